/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tags the TCP packets that leave a device with the stage of their flow, in the DSCP field (ML-ECN
 * §III-B.1, after PIAS). A connection is known by its addresses and ports, and its bytes by the
 * sequence numbers, so a retransmission counts once. A connection that carries one flow after the
 * other begins a new flow when its peer has sent data since the last one: a response follows its
 * request. IPv4 only.
 */
#include "kernel.h"
#include <bpf/bpf_endian.h>

#define MOST_THRESHOLDS 62
#define CONNECTIONS 65536
#define BPF_MAP_TYPE_LRU_HASH 9
/* Continues with the device's other programs. */
#define TC_ACT_UNSPEC (-1)
#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define ICMP 1
#define TCP 6
#define TOS 1
#define IPV4_CHECKSUM 10
#define LEAST_HEADER 20
#define FRAGMENT 0x3FFF
#define DSCP_SHIFT 2
#define ECN_MASK 3
#define FLAG_SYN 0x02
#define FLAG_ACK 0x10
#define FIRST_STAGE 1

enum count { FLOW, CONNECTION };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct __sk_buff {
	__u32 protocol;
};
#pragma clang attribute pop

/* `hosts.stages` of a scenario. Its twin is in kernel/stage.rs. */
struct stages {
	__u32 count; /* enum count */
	__u32 thresholds;
	__u64 threshold[MOST_THRESHOLDS];
	/* The tag of an ACK by the stage of what it acknowledges, from stage 1 on. */
	__u8 acks[MOST_THRESHOLDS + 2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stages);
} stages SEC(".maps");

/* One direction of a connection. */
struct ends {
	__be32 from;
	__be32 to;
	__be32 ports;
};

/* A sequence number and its distance from the first one of the connection. */
struct position {
	__u64 bytes;
	__u32 seq;
	__u32 known;
};

struct progress {
	struct position sent; /* the end of all that was sent */
	struct position heard; /* the end of all that the peer sent */
	__u64 first; /* of the flow */
	__u64 reached; /* the latest byte that a segment began with */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CONNECTIONS);
	__type(key, struct ends);
	__type(value, struct progress);
} connections SEC(".maps");

struct ipv4 {
	__u8 version_length;
	__u8 tos;
	__be16 total_length;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__be16 checksum;
	__be32 from;
	__be32 to;
};

struct tcp {
	__be32 ports;
	__be32 seq;
	__be32 ack;
	__u8 length;
	__u8 flags;
};

static __always_inline __u32 stage_of(const struct stages *s, __u64 bytes)
{
	__u32 passed = 0;

	for (__u32 i = 0; i < MOST_THRESHOLDS; i++) {
		if (i >= s->thresholds || s->threshold[i] > bytes)
			break;
		passed++;
	}
	return FIRST_STAGE + passed;
}

/* The distance of a sequence number from the first one. */
static __always_inline __u64 distance(const struct position *p, __u32 seq)
{
	return p->bytes + (__s64)(__s32)(seq - p->seq);
}

/* Moves to a sequence number if it is ahead; whether it was. */
static __always_inline bool advance(struct position *p, __u32 seq)
{
	if (!p->known) {
		p->seq = seq;
		p->known = true;
		return false;
	}
	if ((__s32)(seq - p->seq) <= 0)
		return false;
	p->bytes += seq - p->seq;
	p->seq = seq;
	return true;
}

static __always_inline __u32 data_stage(const struct stages *s, struct progress *p, __u32 seq,
					__u32 payload)
{
	__u64 begin = distance(&p->sent, seq);

	/* A retransmission does not take its flow back to an earlier stage. */
	if ((__s64)(begin - p->reached) > 0)
		p->reached = begin;
	advance(&p->sent, seq + payload);
	return stage_of(s, s->count == FLOW ? p->reached - p->first : begin);
}

static __always_inline __u32 tcp_tag(struct __sk_buff *skb, const struct stages *s,
				     const struct ipv4 *ip, __u32 header)
{
	struct progress *p, fresh = {};
	struct ends key;
	struct tcp tcp;
	__u32 length, headers, payload, seq, stage;

	if (bpf_skb_load_bytes(skb, ETH_HLEN + header, &tcp, sizeof(tcp)))
		return FIRST_STAGE;
	length = bpf_ntohs(ip->total_length);
	headers = header + (tcp.length >> 4) * 4;
	payload = length > headers ? length - headers : 0;
	seq = bpf_ntohl(tcp.seq);
	key.from = ip->from;
	key.to = ip->to;
	key.ports = tcp.ports;
	if (tcp.flags & FLAG_SYN) {
		/* It has a number of its own, before the first byte. */
		advance(&fresh.sent, seq + 1);
		bpf_map_update_elem(&connections, &key, &fresh, 0);
		return FIRST_STAGE;
	}
	p = bpf_map_lookup_elem(&connections, &key);
	if (!p) {
		advance(&fresh.sent, seq);
		bpf_map_update_elem(&connections, &key, &fresh, 0);
		p = bpf_map_lookup_elem(&connections, &key);
		if (!p)
			return FIRST_STAGE;
	}
	if (tcp.flags & FLAG_ACK && advance(&p->heard, bpf_ntohl(tcp.ack))) {
		p->first = p->sent.bytes;
		p->reached = p->first;
	}
	if (payload)
		return data_stage(s, p, seq, payload);
	stage = stage_of(s, p->heard.bytes);
	return s->acks[stage < sizeof(s->acks) ? stage : 0];
}

/* Both halves of the word, because checksums are made of words. */
static __always_inline void write_dscp(struct __sk_buff *skb, const struct ipv4 *ip, __u32 dscp)
{
	__u8 tos = dscp << DSCP_SHIFT | (ip->tos & ECN_MASK);
	__be16 before = bpf_htons(ip->version_length << 8 | ip->tos);
	__be16 now = bpf_htons(ip->version_length << 8 | tos);

	if (tos == ip->tos)
		return;
	bpf_l3_csum_replace(skb, ETH_HLEN + IPV4_CHECKSUM, before, now, sizeof(now));
	bpf_skb_store_bytes(skb, ETH_HLEN + TOS, &tos, sizeof(tos), 0);
}

SEC("tc")
int stage(struct __sk_buff *skb)
{
	__u32 zero = 0, header, dscp;
	struct stages *s = bpf_map_lookup_elem(&stages, &zero);
	struct ipv4 ip;

	if (!s || skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return TC_ACT_UNSPEC;
	header = (ip.version_length & 0xF) * 4;
	if (header < LEAST_HEADER || ip.fragment & bpf_htons(FRAGMENT))
		return TC_ACT_UNSPEC;
	if (ip.protocol == TCP)
		dscp = tcp_tag(skb, s, &ip, header);
	else if (ip.protocol == ICMP)
		dscp = FIRST_STAGE;
	else
		return TC_ACT_UNSPEC;
	write_dscp(skb, &ip, dscp);
	return TC_ACT_UNSPEC;
}
