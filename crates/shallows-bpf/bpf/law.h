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
};

/* A connection's state, in its icsk_ca_priv. Read by user space. */
struct control {
	__u32 alpha;
	__u32 window_end; /* WindowEnd of RFC 8257 */
	__u32 acked; /* bytes of this window of data */
	__u32 marked;
	__u32 reduced_until; /* if reduced: one reduction a window of data */
	__u32 base; /* least delay, if base_known */
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
	__u8 ce; /* receiver: whether that was marked */
	__u8 state; /* icsk_ca_state as of the ACK before */
	__u8 ready;
	__u8 reduced;
	__u8 base_known;
	__u8 base_kind; /* enum delay_kind */
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

/*
 * EAR eq. 2: delay > base + T. The delay is in ticks of unit_us and may have a constant offset and
 * wrap around, so only differences have a meaning.
 */
static __always_inline bool late(struct control *c, __u32 delay, enum delay_kind kind,
				 __u32 unit_us, __u32 t_us)
{
	if (!c->base_known || c->base_kind != kind || after(c->base, delay)) {
		c->base = delay;
		c->base_kind = kind;
		c->base_known = true;
	}
	c->over_us = (delay - c->base) * unit_us;
	return c->over_us > t_us;
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
