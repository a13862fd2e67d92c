/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The control law: DCTCP's (RFC 8257) on marks, on delay (EAR, eq. 2) or on both. The arithmetic is
 * that of shallows-core, tcp/congestion, in fixed point. Nothing in here touches a socket.
 */
#pragma once

#include "kernel.h"

/* 1.0 of alpha, g and fractions. */
#define ONE (1U << 20)
/* The least window. A receiver may delay the ACK of a single segment. */
#define LEAST 2U

/* What the delay of an ACK is. */
enum delay_kind {
	DELAY_RTT,
	DELAY_ONE_WAY,
};

/* Set from user space at any time. */
struct parameters {
	__u32 g;
	__u32 initial_alpha;
	__u32 t_us;
	__u32 delay; /* enum delay_kind */
	__u32 base_lifetime_ms; /* 0: the base never expires */
};

/* A connection's state, in its icsk_ca_priv. Read by user space. */
struct control {
	__u32 alpha;
	__u32 window_end; /* WindowEnd of RFC 8257 */
	__u32 acked; /* bytes of this window of data */
	__u32 marked;
	__u32 reduced_until; /* if reduced: one reduction a window of data */
	__u32 base; /* least delay of a full segment, if base_known */
	__u32 over_us; /* latest delay less the base */
	__u32 rtt_us; /* of the segment that this ACK answers; 0 if unknown */
	__u32 una; /* as of the ACK before: */
	__u32 delivered;
	__u32 delivered_ce;
	__u32 high_seq;
	__u32 cwnd;
	__u32 cnt; /* the kernel forgets its own as congestion begins */
	__u32 ssthresh;
	__u32 loss_cwnd; /* before the latest loss */
	__u32 loss_ssthresh;
	__u32 rcv_nxt; /* receiver: before the latest segment */
	__u32 late_since_ms; /* if all_late: since when every full segment was late, */
	__u32 least_late; /* and the least delay among them */
	__u8 ce; /* receiver: whether that was marked */
	__u8 state; /* icsk_ca_state as of the ACK before */
	__u8 ready;
	__u8 reduced;
	__u8 base_known;
	__u8 base_kind; /* enum delay_kind */
	__u8 all_late;
};

_Static_assert(sizeof(struct control) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
	       "the state must fit into the socket");

/* RFC 8257 §3.3 steps 1 to 6: counts an ACK; the one that ends the window of data updates alpha. */
static __always_inline void count(struct control *c, __u32 g, __u32 una, __u32 nxt, __u32 acked,
				  bool signal)
{
	c->acked += acked;
	if (signal)
		c->marked += acked;
	if (!after(una, c->window_end))
		return;
	if (c->acked) {
		__u64 fraction = ((__u64)c->marked << 20) / c->acked;

		c->alpha = ((__u64)c->alpha * (ONE - g) + g * fraction + ONE / 2) >> 20;
	}
	c->window_end = nxt;
	c->acked = 0;
	c->marked = 0;
}

/* RFC 8257 §3.4: whether a signal may reduce the window, which it may once a window of data. */
static __always_inline bool may_reduce(struct control *c, __u32 una, __u32 nxt, bool signal)
{
	if (c->reduced && after(una, c->reduced_until))
		c->reduced = false;
	if (!signal || c->reduced)
		return false;
	c->reduced = true;
	c->reduced_until = nxt;
	return true;
}

/* One measured delay. */
struct delay {
	enum delay_kind kind;
	/* In ticks of unit_us. May have a constant offset and wrap around: only differences count. */
	__u32 ticks;
	__u32 unit_us;
	bool full; /* the ACK covers a full segment; a shorter one takes less time on each link */
	__u32 now_ms;
};

/*
 * The base expires where every full segment was late for its lifetime: the path has become longer.
 * A queue of our own would have drained by then. Returns whether it has.
 */
static __always_inline bool expired(struct control *c, const struct parameters *p,
				    const struct delay *d, bool is_late)
{
	if (!is_late) {
		c->all_late = false;
		return false;
	}
	if (!c->all_late || after(c->least_late, d->ticks))
		c->least_late = d->ticks;
	if (!c->all_late)
		c->late_since_ms = d->now_ms;
	c->all_late = true;
	if (d->now_ms - c->late_since_ms < p->base_lifetime_ms)
		return false;
	c->base = c->least_late;
	c->all_late = false;
	return true;
}

static __always_inline bool over(struct control *c, const struct parameters *p,
				 const struct delay *d)
{
	c->over_us = after(d->ticks, c->base) ? (d->ticks - c->base) * d->unit_us : 0;
	return c->over_us > p->t_us;
}

/* EAR eq. 2: delay > base + T, where the base is the least delay of a full segment. */
static __always_inline bool late(struct control *c, const struct parameters *p,
				 const struct delay *d)
{
	bool is_late;

	if (c->base_kind != d->kind) {
		c->base_known = false;
		c->all_late = false;
	}
	if (d->full && (!c->base_known || after(c->base, d->ticks))) {
		c->base = d->ticks;
		c->base_kind = d->kind;
		c->base_known = true;
	}
	if (!c->base_known)
		return false;
	is_late = over(c, p, d);
	if (d->full && p->base_lifetime_ms && expired(c, p, d, is_late))
		return over(c, p, d);
	return is_late;
}

/*
 * cwnd x (1 - alpha / 2). The kernel counts whole segments; the fraction beyond them lives in cnt,
 * of which cwnd make a segment, so that small reductions of small windows are not lost.
 */
static __always_inline void shrink(__u32 *cwnd, __u32 *cnt, __u32 alpha)
{
	__u32 whole = max(*cwnd, 1U);
	__u64 window = ((__u64)whole << 16) + ((__u64)*cnt << 16) / whole;

	window -= window * alpha >> 21;
	window = max(window, (__u64)LEAST << 16);
	*cwnd = window >> 16;
	*cnt = (window & 0xffff) * *cwnd >> 16;
}
