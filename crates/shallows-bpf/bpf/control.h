/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From the kernel's events to the control law and back to the window; the controllers say what they
 * listen to.
 *
 * The window is set in cong_control, once an ACK, and not by what ssthresh and undo_cwnd return:
 * the kernel was seen to take garbage for it in one of a thousand calls. Both are rewritten here
 * before anything is sent with them. cong_control takes the socket only, because its other
 * arguments changed between kernels.
 */
#pragma once

#include "law.h"

/* What a controller listens to, and whether alpha follows the fraction of it or is 1. */
#define MARKS 1
#define DELAY 2
#define FRACTION 4

struct counters {
	__u64 acks; /* of new data */
	__u64 marked;
	__u64 late;
	__u64 reductions;
	__u64 losses;
	__u64 timeouts;
	__u64 fallbacks; /* connections without ECN, handed to reno */
	__u64 ce_segments; /* receiver: CE, with offloads of possibly several segments */
	__u64 ce_changes;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct parameters);
} parameters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

#define COUNT(what)                                                        \
	({                                                                 \
		__u32 zero = 0;                                            \
		struct counters *all = bpf_map_lookup_elem(&counters, &zero); \
		if (all)                                                   \
			__sync_fetch_and_add(&all->what, 1);               \
	})

static __always_inline struct control *control_of(struct sock *sk)
{
	return (struct control *)inet_csk(sk)->icsk_ca_priv;
}

static __always_inline void start(struct sock *sk, struct control *c, const struct parameters *p)
{
	struct tcp_sock *tp = tcp_sk(sk);

	c->alpha = p->initial_alpha;
	c->una = tp->snd_una;
	c->window_end = tp->snd_una;
	c->delivered = tp->delivered;
	c->delivered_ce = tp->delivered_ce;
	c->high_seq = tp->high_seq;
	c->cwnd = tp->snd_cwnd;
	c->ssthresh = tp->snd_ssthresh;
	c->rcv_nxt = tp->rcv_nxt;
	c->ready = true;
}

static __always_inline void on_init(struct sock *sk, const int hears)
{
	char reno[] = "reno";
	__u32 zero = 0;
	struct parameters *p = bpf_map_lookup_elem(&parameters, &zero);

	if ((hears & MARKS) && !(tcp_sk(sk)->ecn_flags & TCP_ECN_OK)) {
		COUNT(fallbacks);
		bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
		return;
	}
	if (p)
		start(sk, control_of(sk), p);
}

/*
 * Whether the receiver may have held this ACK back, waiting for a second segment (RFC 1122): one of
 * a lone segment that was short or the last in flight. Its delay says nothing about queues.
 */
static __always_inline bool maybe_delayed(struct tcp_sock *tp, __u32 acked, __u32 segments)
{
	return segments <= 1 && (acked < tp->mss_cache || tp->snd_una == tp->snd_nxt);
}

/* EAR §4.1: whether the segment that this ACK answers was late. */
static __always_inline bool judge_delay(struct tcp_sock *tp, struct control *c,
					const struct parameters *p, __u32 acked, __u32 segments)
{
	struct delay d = {
		.kind = DELAY_RTT,
		.ticks = c->rtt_us,
		.unit_us = 1,
		.full = acked >= tp->mss_cache,
		.now_ms = tp->tcp_mstamp / 1000,
	};

	c->rtt_us = 0;
	if (maybe_delayed(tp, acked, segments))
		return false;
	if (p->delay == DELAY_ONE_WAY && tp->rx_opt.rcv_tsecr) {
		bool usec = bpf_core_field_exists(tp->tcp_usec_ts) &&
			    BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts);
		__u32 unit_us = usec ? 1 : 1000;

		/* Two clocks of whole ticks disagree by one at times; below a tick T cannot be told. */
		if (unit_us <= p->t_us) {
			d.kind = DELAY_ONE_WAY;
			d.ticks = tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr;
			d.unit_us = unit_us;
			return late(c, p, &d);
		}
	}
	return d.ticks && late(c, p, &d);
}

/* RFC 5681 eq. 4: half of what is in flight. */
static __always_inline void remember_loss(struct tcp_sock *tp, struct control *c, __u32 cwnd)
{
	c->loss_cwnd = cwnd;
	c->loss_ssthresh = c->ssthresh;
	c->ssthresh = max(min(cwnd, tp->packets_out) / 2, LEAST);
}

/* RFC 6675: half the window, and the first retransmission whatever the window says. */
static __always_inline __u32 begin_recovery(struct tcp_sock *tp, struct control *c, __u32 cwnd,
					    const int hears)
{
	__u32 pipe = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;

	COUNT(losses);
	/* RFC 3168 §6.1.2 has one reduction for marks and losses; RFC 8257 §3.5 halves anyway. */
	if ((hears & FRACTION) || !c->reduced)
		remember_loss(tp, c, cwnd);
	return max(c->ssthresh, pipe + 1);
}

/* The rate that the kernel sets for its own controllers; it sizes bursts, and fq paces by it. */
static __always_inline void pace(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	__u64 rate = (__u64)max(tp->snd_cwnd, tp->packets_out) * tp->mss_cache * percent * 80000;

	if (tp->srtt_us)
		sk->sk_pacing_rate = min(rate / tp->srtt_us, sk->sk_max_pacing_rate);
}

static __always_inline void on_ack(struct sock *sk, const int hears)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct control *c = control_of(sk);
	__u32 zero = 0;
	struct parameters *p = bpf_map_lookup_elem(&parameters, &zero);
	__u32 state = BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state);

	if (!p)
		return;
	if (!c->ready)
		start(sk, c, p);

	__u32 una = tp->snd_una, nxt = tp->snd_nxt;
	__u32 acked = una - c->una;
	__u32 segments = tp->delivered - c->delivered;
	bool marked = tp->delivered_ce != c->delivered_ce;
	/* The kernel only lowers it, or undoes a reduction, which our undo has allowed. */
	__u32 cwnd = min(tp->snd_cwnd, c->cwnd);
	__u32 cnt = c->cnt;
	bool signal = false;

	if (acked) {
		bool is_late = (hears & DELAY) && judge_delay(tp, c, p, acked, segments);

		signal = ((hears & MARKS) && marked) || is_late;
		if (hears & FRACTION)
			count(c, p->g, una, nxt, acked, signal);
		COUNT(acks);
		if (marked)
			COUNT(marked);
		if (is_late)
			COUNT(late);
		if (may_reduce(c, una, nxt, signal)) {
			shrink(&cwnd, &cnt, hears & FRACTION ? c->alpha : ONE);
			c->ssthresh = cwnd;
			COUNT(reductions);
		}
	}
	if (state == TCP_CA_Recovery) {
		bool begins = c->state != TCP_CA_Recovery || c->high_seq != tp->high_seq;

		cwnd = begins ? begin_recovery(tp, c, cwnd, hears) : min(cwnd, c->ssthresh);
	}
	tp->snd_cwnd = cwnd;
	tp->snd_cwnd_cnt = cnt;
	tp->snd_ssthresh = c->ssthresh;
	if (acked && !signal && state != TCP_CA_Recovery)
		tcp_reno_cong_avoid(sk, una, segments);
	pace(sk);

	c->una = una;
	c->delivered = tp->delivered;
	c->delivered_ce = tp->delivered_ce;
	c->high_seq = tp->high_seq;
	c->state = state;
	c->cwnd = tp->snd_cwnd;
	c->cnt = tp->snd_cwnd_cnt;
}

/* RFC 5681 §3.1, before the kernel takes the window of one segment. */
static __always_inline void on_timeout(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct control *c = control_of(sk);

	COUNT(timeouts);
	remember_loss(tp, c, tp->snd_cwnd);
	tp->snd_ssthresh = c->ssthresh;
	c->window_end = tp->snd_una;
	c->reduced = false;
	c->cnt = 0;
}

/* The route's initcwnd, or the kernel's default: what the kernel's own controllers restart with. */
static __always_inline __u32 initial_window(struct sock *sk)
{
	struct dst_entry *route = sk->sk_dst_cache;
	__u32 window = 0;

	if (route) {
		__u32 *metrics = (__u32 *)(route->_metrics & ~DST_METRICS_FLAGS);

		bpf_probe_read_kernel(&window, sizeof(window), &metrics[RTAX_INITCWND - 1]);
	}
	return min(window ? window : TCP_INIT_CWND, tcp_sk(sk)->snd_cwnd_clamp);
}

/* RFC 5681 §4.1, which the kernel leaves to controllers with a cong_control. */
static __always_inline void on_transmit_start(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 rto = inet_csk(sk)->icsk_rto;
	__s32 idle = (__u32)bpf_jiffies64() - tp->lsndtime;
	__u32 cwnd = tp->snd_cwnd, restart;

	if (!sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_slow_start_after_idle || idle <= (__s32)rto)
		return;
	restart = initial_window(sk);
	/* As the kernel has it: half for each timeout of idle time. */
	for (int i = 0; i < 32 && idle > (__s32)rto && cwnd > restart; i++) {
		cwnd /= 2;
		idle -= rto;
	}
	if (cwnd < tp->snd_cwnd) {
		cwnd = max(cwnd, restart);
		tp->snd_cwnd = cwnd;
		control_of(sk)->cnt = 0;
	}
}

static __always_inline void say(struct tcp_sock *tp, bool ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/*
 * Whether the segments before this one wait for their ACK. Not only if its timer runs: the kernel
 * also defers ACKs while the socket is busy. An ACK of the state before takes the window update
 * (rcv_wup) of this segment with it; there the flag tells.
 */
static __always_inline bool owes_ack(struct sock *sk)
{
	return (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_NOW) ||
	       after(control_of(sk)->rcv_nxt, tcp_sk(sk)->rcv_wup);
}

/*
 * RFC 8257 §3.2: every ACK says of its last segment whether that was marked. As this changes, a
 * delayed ACK is sent at once for the segments before, and the new state with the next ACK.
 */
static __always_inline void on_segment(struct sock *sk, bool ce)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct control *c = control_of(sk);

	if (ce)
		COUNT(ce_segments);
	if (ce != c->ce) {
		COUNT(ce_changes);
		if (owes_ack(sk)) {
			say(tp, c->ce);
			bpf_tcp_send_ack(tp, c->rcv_nxt);
		}
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	c->rcv_nxt = tp->rcv_nxt;
	c->ce = ce;
	say(tp, ce);
}

static __always_inline void on_event(struct sock *sk, enum tcp_ca_event event, bool precise)
{
	if (event == CA_EVENT_LOSS)
		on_timeout(sk);
	else if (event == CA_EVENT_TX_START)
		on_transmit_start(sk);
	else if (precise && event == CA_EVENT_ECN_IS_CE)
		on_segment(sk, true);
	else if (precise && event == CA_EVENT_ECN_NO_CE)
		on_segment(sk, false);
}

/* The kernel asks for a threshold as congestion begins; cong_control has the word. */
static __always_inline __u32 on_ssthresh(struct sock *sk)
{
	return max(control_of(sk)->ssthresh, LEAST);
}

/* The loss was none. */
static __always_inline __u32 on_undo(struct sock *sk)
{
	struct control *c = control_of(sk);

	c->cwnd = max(tcp_sk(sk)->snd_cwnd, c->loss_cwnd);
	c->ssthresh = max(c->ssthresh, c->loss_ssthresh);
	return c->cwnd;
}

/* A controller: what it listens to, and whether its receiver echoes precisely. */
#define CONTROLLER(ca_name, hears, precise, ca_flags)                                \
	SEC("struct_ops") void BPF_PROG(init, struct sock *sk)                       \
	{                                                                            \
		on_init(sk, hears);                                                  \
	}                                                                            \
	SEC("struct_ops") void BPF_PROG(cong_control, struct sock *sk)               \
	{                                                                            \
		on_ack(sk, hears);                                                   \
	}                                                                            \
	SEC("struct_ops") void BPF_PROG(cwnd_event, struct sock *sk, int event)      \
	{                                                                            \
		on_event(sk, event, precise);                                        \
	}                                                                            \
	SEC("struct_ops") void BPF_PROG(pkts_acked, struct sock *sk,                 \
					const struct ack_sample *sample)             \
	{                                                                            \
		control_of(sk)->rtt_us = max(sample->rtt_us, 0);                     \
	}                                                                            \
	SEC("struct_ops") __u32 BPF_PROG(ssthresh, struct sock *sk)                  \
	{                                                                            \
		return on_ssthresh(sk);                                              \
	}                                                                            \
	SEC("struct_ops") __u32 BPF_PROG(undo_cwnd, struct sock *sk)                 \
	{                                                                            \
		return on_undo(sk);                                                  \
	}                                                                            \
	SEC(".struct_ops.link")                                                      \
	struct tcp_congestion_ops controller = {                                     \
		.init = (void *)init,                                                \
		.cong_control = (void *)cong_control,                                \
		.cwnd_event = (void *)cwnd_event,                                    \
		.pkts_acked = (void *)pkts_acked,                                    \
		.ssthresh = (void *)ssthresh,                                        \
		.undo_cwnd = (void *)undo_cwnd,                                      \
		.name = ca_name,                                                     \
		.flags = (ca_flags),                                                 \
	}
