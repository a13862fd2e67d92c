/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests: a switch that marks every 16th segment with data, if it is ECT. */
#include "kernel.h"
#include <bpf/bpf_endian.h>

#define EVERY 16
#define TC_ACT_OK 0
#define ETH_P_IP 0x0800
#define ETH_HLEN 14
/* IPv4 header without options, TCP header, Ethernet header: more has data. */
#define ALL_HEADERS (ETH_HLEN + 20 + 60)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct __sk_buff {
	__u32 len;
	__u32 protocol;
};
#pragma clang attribute pop

__u64 segments;

SEC("tc")
int marker(struct __sk_buff *skb)
{
	__u16 before, after_mark;

	if (skb->protocol != bpf_htons(ETH_P_IP) || skb->len <= ALL_HEADERS)
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &before, sizeof(before)))
		return TC_ACT_OK;
	if (!(before & bpf_htons(3)) || __sync_fetch_and_add(&segments, 1) % EVERY)
		return TC_ACT_OK;
	after_mark = before | bpf_htons(3);
	bpf_l3_csum_replace(skb, ETH_HLEN + 10, before, after_mark, sizeof(before));
	bpf_skb_store_bytes(skb, ETH_HLEN, &after_mark, sizeof(after_mark), 0);
	return TC_ACT_OK;
}
