/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs the control law over ACKs from user space, to compare it with the simulated controllers. */
#include "law.h"

#define STEPS 4096

/* One ACK, and what came of it. Its twin is in model.rs. */
struct step {
	__u32 una;
	__u32 nxt;
	__u32 acked;
	__u32 marked;
	__u32 delay_us; /* 0: listen to marks only */
	__u32 full; /* whether acked is a full segment or more */
	__u32 now_ms;
	__u32 alpha;
	__u32 reduced;
	__u32 cwnd;
	__u32 cnt;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STEPS);
	__type(key, __u32);
	__type(value, struct step);
} steps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct parameters);
} parameters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} position SEC(".maps");

/* Runs the step at `position`; the kernel is told to repeat it. */
SEC("tc")
int model(void *ctx)
{
	__u32 zero = 0;
	__u32 *i = bpf_map_lookup_elem(&position, &zero);
	struct parameters *p = bpf_map_lookup_elem(&parameters, &zero);
	struct control *c = bpf_map_lookup_elem(&state, &zero);
	struct step *s;
	bool signal;

	if (!i || !p || !c)
		return 1;
	s = bpf_map_lookup_elem(&steps, i);
	if (!s)
		return 1;
	*i += 1;
	if (!c->ready) {
		c->alpha = p->initial_alpha;
		c->window_end = s->una - s->acked;
		c->ready = true;
	}
	signal = s->marked;
	if (s->delay_us) {
		struct delay d = {
			.kind = DELAY_RTT,
			.ticks = s->delay_us,
			.unit_us = 1,
			.full = s->full,
			.now_ms = s->now_ms,
		};

		signal |= late(c, p, &d);
	}
	count(c, p->g, s->una, s->nxt, s->acked, signal);
	s->reduced = may_reduce(c, s->una, s->nxt, signal);
	if (s->reduced)
		shrink(&s->cwnd, &s->cnt, c->alpha);
	s->alpha = c->alpha;
	return 0;
}
