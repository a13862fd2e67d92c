/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * QJUMP's rate limiter (Listing 1) at the egress of a device, or where the frames of a guest come
 * in: a bucket for each level, filled anew in each epoch. A packet carries its level in its priority,
 * as a number of our own (MAJOR), or in its DSCP field; both are written anew, the priority as the
 * device's queue serves the level, the DSCP for switches, with the PCP bits of a VLAN tag. Packets
 * without a level have that of their application while somebody chooses levels (§8).
 */
#include "kernel.h"
#include <bpf/bpf_endian.h>

#define LEVELS 8
#define APPLICATIONS 4096
#define BPF_NOEXIST 1
#define UNLIMITED (~0ULL)
/* Goes on to the device's other programs. */
#define TC_ACT_UNSPEC (-1)
#define TC_ACT_SHOT 2
#define ETH_HLEN 14
#define VLAN_HLEN 4
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88A8
#define PCP_SHIFT 13
#define PCP_MASK 0xE000
#define DSCP_SHIFT 2
#define ECN_MASK 3
#define IPV4_CHECKSUM 10
#define TCP 6
/* Priorities of ours are class ids of this qdisc handle: MAJOR:1 is level 0. */
#define MAJOR 0x514A0000U
#define MAJOR_MASK 0xFFFF0000U
/* A frame on the wire: its least length without FCS, then preamble, FCS and gap. */
#define SMALLEST 60
#define OVERHEAD 24

enum direction { EGRESS, INGRESS };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct __sk_buff {
	__u32 len;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 wire_len;
	__u32 gso_segs;
	__u32 gso_size;
};
#pragma clang attribute pop

struct bpf_spin_lock {
	__u32 val;
};

/* The limits. Its twin is in kernel/qjump/layout.rs. */
struct limits {
	__u64 epoch_ns;
	/* From then on everything passes as it is; 0 for never. */
	__u64 until_ns;
	__u32 levels;
	/* Whether an epoch begins at the first packet after the one before. */
	__u32 reanchored;
	/* The queue behind holds the excess, so only what never fits is dropped here. */
	__u32 held;
	/* Frames without a VLAN tag get one with VID 0. */
	__u32 priority_tag;
	/* The priority by which the device's queue serves a level. */
	__u32 priority_of_level[LEVELS];
	/* The level that has this DSCP, 0 for none. */
	__u8 level_of_dscp[64];
};

/* A level. Its twin is in kernel/qjump/layout.rs. */
struct bucket {
	struct bpf_spin_lock lock;
	__u32 dscp;
	__u64 allotment;
	__u64 epoch_end;
	__u64 tokens;
	__u64 epochs;
	__u64 passed_packets;
	__u64 passed_bytes;
	__u64 dropped_packets;
	__u64 dropped_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct limits);
} limits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LEVELS);
	__type(key, __u32);
	__type(value, struct bucket);
} buckets SEC(".maps");

/* What has to be known to remove it again. Its twin is in kernel/qjump/layout.rs. */
struct installation {
	char device[16];
	__u32 ifindex;
	/* Whether the device had no clsact before. */
	__u32 created_clsact;
	/* Whether the root qdisc is ours. */
	__u32 created_root;
	/* Whether it limits what comes in. */
	__u32 ingress;
	/* Bytes that may wait at a level of the root that is ours. */
	__u32 hold_limit;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct installation);
} installation SEC(".maps");

/* Who chooses levels. Its twin is in kernel/qjump/layout.rs. */
struct automatic {
	/* Renewed with every round, so that levels that nobody looks after any more do not last. */
	__u64 until_ns;
	__u64 round;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct automatic);
} automatic SEC(".maps");

/* What a cgroup has sent without a level by hand. Its twin is in kernel/qjump/layout.rs. */
struct application {
	struct bpf_spin_lock lock;
	__u32 padding;
	__u64 round;
	/* The epoch of the last packet, counted from the clock's zero, and its bytes. */
	__u64 epoch;
	__u64 epoch_bytes;
	/* The most bytes of an epoch, in this round and in the one before. */
	__u64 peak;
	__u64 peak_before;
	__u64 packets;
	__u64 bytes;
	/* Packets that found no tokens at the application's level and went at a lower one. */
	__u64 lowered_packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, APPLICATIONS);
	__type(key, __u64);
	__type(value, struct application);
} applications SEC(".maps");

/* The chosen levels, by cgroup. The program only reads them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, APPLICATIONS);
	__type(key, __u64);
	__type(value, __u32);
} chosen SEC(".maps");

/* What a packet has to carry its level in. */
struct headers {
	/* Offset of the tag in the packet if it is not beside it, else 0. */
	__u32 inline_tag;
	__u16 tci; /* of the inline tag, network order */
	/* Offset of the IP header, and its version; 0 for others. */
	__u32 ip;
	__u32 version;
	/* The first 16 bits of the IP header, host order: TOS or traffic class in them. */
	__u16 word;
	__u8 traffic_class;
};

static __always_inline void parse(struct __sk_buff *skb, struct headers *h)
{
	__u32 protocol = skb->protocol;
	__u32 offset = ETH_HLEN;
	__u16 word;

	if (protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, &h->tci, sizeof(h->tci)) ||
		    bpf_skb_load_bytes(skb, ETH_HLEN + 2, &word, sizeof(word)))
			return;
		h->inline_tag = ETH_HLEN;
		protocol = word;
		offset += VLAN_HLEN;
	}
	if (protocol != bpf_htons(ETH_P_IP) && protocol != bpf_htons(ETH_P_IPV6))
		return;
	if (bpf_skb_load_bytes(skb, offset, &word, sizeof(word)))
		return;
	h->ip = offset;
	h->word = bpf_ntohs(word);
	if (protocol == bpf_htons(ETH_P_IP)) {
		h->version = 4;
		h->traffic_class = h->word;
	} else {
		h->version = 6;
		h->traffic_class = h->word >> 4;
	}
}

static __always_inline bool can_carry_level(const struct __sk_buff *skb, const struct headers *h)
{
	return h->version || h->inline_tag || skb->vlan_present;
}

/*
 * The level of the priority if it is one of ours, else that of the DSCP: kernel replies (ICMP echo),
 * forwarded packets and programs that set IP_TOS alone have the latter. Other priorities say nothing:
 * the kernel makes them of IP_TOS. What can carry no level has the lowest.
 */
static __always_inline __u32 level_of(struct __sk_buff *skb, const struct limits *l,
				      const struct headers *h)
{
	__u32 level = (skb->priority & ~MAJOR_MASK) - 1;

	if (!can_carry_level(skb, h))
		return 0;
	if ((skb->priority & MAJOR_MASK) == MAJOR && level < l->levels)
		return level;
	return h->version ? l->level_of_dscp[h->traffic_class >> DSCP_SHIFT] : 0;
}

/* What a packet takes on the wire: one frame, or those that it will be cut into (GSO). */
struct size {
	__u64 bytes;
	__u64 largest_frame;
};

/* The bytes of the headers that every frame of a GSO packet repeats. */
static __always_inline __u32 header_length(struct __sk_buff *skb, const struct headers *h)
{
	__u32 transport = h->ip;
	__u8 length, protocol;

	if (h->version == 4) {
		if (bpf_skb_load_bytes(skb, h->ip, &length, 1) ||
		    bpf_skb_load_bytes(skb, h->ip + 9, &protocol, 1))
			return h->ip + 20;
		transport += (length & 0xF) * 4;
	} else {
		if (bpf_skb_load_bytes(skb, h->ip + 6, &protocol, 1))
			return h->ip + 40;
		transport += 40;
	}
	if (protocol != TCP || bpf_skb_load_bytes(skb, transport + 12, &length, 1))
		return transport + 8;
	return transport + (length >> 4) * 4;
}

static __always_inline struct size size_of(struct __sk_buff *skb, const struct limits *l,
					   const struct headers *h, enum direction direction)
{
	__u32 frames = skb->gso_segs, unit = skb->gso_size, length = skb->len;
	__u32 more = OVERHEAD, header;
	struct size size;

	if (skb->vlan_present || (l->priority_tag && !h->inline_tag))
		more += VLAN_HLEN;
	if (!unit || !h->version) {
		if (direction == EGRESS)
			length = skb->wire_len;
		size.bytes = (length < SMALLEST ? SMALLEST : length) + more;
		size.largest_frame = size.bytes;
		return size;
	}
	header = header_length(skb, h);
	/* A guest may not say how many. */
	if (!frames && length > header)
		frames = (length - header + unit - 1) / unit;
	if (!frames)
		frames = 1;
	size.bytes = length + (frames - 1) * header + frames * more;
	size.largest_frame = header + unit + more;
	return size;
}

/* Listing 1, for one level: whether the packet may go. One that can wait goes to the queue behind. */
static __always_inline bool admit(struct bucket *b, const struct limits *l,
				  const struct size *size, bool can_wait, __u64 now)
{
	__u64 bytes = size->bytes;
	bool passes, waits;

	if (b->allotment == UNLIMITED) {
		__sync_fetch_and_add(&b->passed_packets, 1);
		__sync_fetch_and_add(&b->passed_bytes, bytes);
		return true;
	}
	waits = can_wait && size->largest_frame <= b->allotment;
	/*
	 * One CPU at a time, or two would spend the same tokens. A CPU that read the clock before the
	 * other refilled spends those of the new epoch.
	 */
	bpf_spin_lock(&b->lock);
	if ((__s64)(now - b->epoch_end) >= 0) {
		b->tokens = b->allotment;
		b->epochs++;
		if (l->reanchored)
			b->epoch_end = now + l->epoch_ns;
		else
			b->epoch_end += ((now - b->epoch_end) / l->epoch_ns + 1) * l->epoch_ns;
	}
	passes = bytes <= b->tokens || waits;
	if (passes) {
		b->tokens -= bytes < b->tokens ? bytes : b->tokens;
		b->passed_packets++;
		b->passed_bytes += bytes;
	}
	bpf_spin_unlock(&b->lock);
	return passes;
}

/* Counts what an application sends, for whoever chooses its level. */
static __always_inline void count(struct application *a, __u64 round, __u64 epoch, __u64 bytes)
{
	bpf_spin_lock(&a->lock);
	if (a->round != round) {
		a->peak_before = a->round + 1 == round ? a->peak : 0;
		a->peak = 0;
		a->round = round;
	}
	if (a->epoch != epoch) {
		a->epoch = epoch;
		a->epoch_bytes = 0;
	}
	a->epoch_bytes += bytes;
	if (a->epoch_bytes > a->peak)
		a->peak = a->epoch_bytes;
	a->packets++;
	a->bytes += bytes;
	bpf_spin_unlock(&a->lock);
}

/* The application of a packet whose level is chosen, which becomes `level`; none for others. */
static __always_inline struct application *application_of(struct __sk_buff *skb,
							  const struct limits *l,
							  __u64 bytes, __u64 now, __u32 *level)
{
	struct application new = {};
	struct application *a;
	struct automatic *by;
	__u32 zero = 0;
	__u32 *chosen_level;
	__u64 cgroup;

	by = bpf_map_lookup_elem(&automatic, &zero);
	if (!by || now >= by->until_ns)
		return 0;
	cgroup = bpf_skb_cgroup_id(skb);
	if (!cgroup)
		return 0;
	a = bpf_map_lookup_elem(&applications, &cgroup);
	if (!a) {
		bpf_map_update_elem(&applications, &cgroup, &new, BPF_NOEXIST);
		a = bpf_map_lookup_elem(&applications, &cgroup);
		if (!a)
			return 0;
	}
	count(a, by->round, now / l->epoch_ns, bytes);
	chosen_level = bpf_map_lookup_elem(&chosen, &cgroup);
	if (chosen_level && *chosen_level < l->levels)
		*level = *chosen_level;
	return a;
}

/* Writes the level where switches look for it. */
static __always_inline void tag(struct __sk_buff *skb, const struct limits *l,
				const struct headers *h, __u32 level, __u32 dscp)
{
	__u8 class = dscp << DSCP_SHIFT | (h->traffic_class & ECN_MASK);
	__u16 pcp = level << PCP_SHIFT;
	__u16 before, after;

	if (h->inline_tag) {
		after = bpf_htons((bpf_ntohs(h->tci) & ~PCP_MASK) | pcp);
		if (after != h->tci)
			bpf_skb_store_bytes(skb, h->inline_tag, &after, sizeof(after), 0);
	}
	if (h->version && class != h->traffic_class) {
		before = bpf_htons(h->word);
		if (h->version == 4) {
			after = bpf_htons((h->word & 0xFF00) | class);
			bpf_l3_csum_replace(skb, h->ip + IPV4_CHECKSUM, before, after, sizeof(after));
		} else {
			after = bpf_htons((h->word & 0xF00F) | class << 4);
		}
		bpf_skb_store_bytes(skb, h->ip, &after, sizeof(after), 0);
	}
	if (skb->vlan_present) {
		__u16 tci = (skb->vlan_tci & ~PCP_MASK) | pcp;
		__be16 proto = skb->vlan_proto;

		if (tci != skb->vlan_tci && !bpf_skb_vlan_pop(skb))
			bpf_skb_vlan_push(skb, proto, tci);
	} else if (l->priority_tag && !h->inline_tag) {
		bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), pcp);
	}
	/* Where driver queues are chosen by priority (mqprio), this chooses them (line 16). */
	skb->priority = l->priority_of_level[level & (LEVELS - 1)];
}

static __always_inline int limit(struct __sk_buff *skb, enum direction direction)
{
	struct application *a = 0;
	__u32 level, zero = 0;
	struct headers h = {};
	struct limits *l;
	struct bucket *b;
	struct size size;
	__u64 now;
	int i;

	l = bpf_map_lookup_elem(&limits, &zero);
	if (!l)
		return TC_ACT_UNSPEC;
	now = bpf_ktime_get_ns();
	if (l->until_ns && now >= l->until_ns)
		return TC_ACT_UNSPEC;
	parse(skb, &h);
	level = level_of(skb, l, &h);
	size = size_of(skb, l, &h, direction);
	if (direction == EGRESS && !level && can_carry_level(skb, &h))
		a = application_of(skb, l, size.bytes, now, &level);
	for (i = 0; i < LEVELS; i++) {
		b = bpf_map_lookup_elem(&buckets, &level);
		if (!b)
			return TC_ACT_UNSPEC;
		/* A GSO packet passes whole or not at all. */
		if (admit(b, l, &size, l->held && !a, now)) {
			if (a && i)
				__sync_fetch_and_add(&a->lowered_packets, 1);
			tag(skb, l, &h, level, b->dscp);
			return TC_ACT_UNSPEC;
		}
		/* A program whose level was chosen for it does not lose what exceeds the level. */
		if (!a || !level)
			break;
		level--;
	}
	__sync_fetch_and_add(&b->dropped_packets, 1);
	__sync_fetch_and_add(&b->dropped_bytes, size.bytes);
	return TC_ACT_SHOT;
}

SEC("tcx/egress")
int shallows_qjump(struct __sk_buff *skb)
{
	return limit(skb, EGRESS);
}

SEC("tcx/ingress")
int shallows_guest(struct __sk_buff *skb)
{
	return limit(skb, INGRESS);
}
