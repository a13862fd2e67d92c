/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the state of every socket of the reader's network namespace that runs a controller. */
#include "law.h"

/* One socket. Its twin is in layout.rs. */
struct record {
	__u8 local[16];
	__u8 remote[16];
	char name[TCP_CA_NAME_MAX];
	__u32 namespace;
	__u16 local_port;
	__u16 remote_port; /* in network order */
	__u16 family;
	__u8 state;
	__u8 padding;
	__u32 mss;
	__u32 cwnd;
	__u32 ssthresh;
	__u32 srtt_us; /* eighths */
	__u32 delivered;
	__u32 delivered_ce;
	__u32 received_ce;
	__u32 retransmits;
	struct control control;
};

SEC("iter/tcp")
int sockets(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct seq_file *seq = ctx->meta->seq;
	struct record r = {};
	struct tcp_sock *tp;

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	BPF_CORE_READ_INTO(&r.name, tp, inet_conn.icsk_ca_ops, name);
	if (r.name[0] != 's' || r.name[1] != 'h' || r.name[2] != 'l' || r.name[3] != '_')
		return 0;

	r.namespace = BPF_CORE_READ(common, skc_net.net, ns.inum);
	r.family = BPF_CORE_READ(common, skc_family);
	r.state = BPF_CORE_READ(common, skc_state);
	r.local_port = BPF_CORE_READ(common, skc_num);
	r.remote_port = BPF_CORE_READ(common, skc_dport);
	if (r.family == 2) {
		bpf_core_read(r.local, 4, &common->skc_rcv_saddr);
		bpf_core_read(r.remote, 4, &common->skc_daddr);
	} else {
		bpf_core_read(r.local, 16, &common->skc_v6_rcv_saddr);
		bpf_core_read(r.remote, 16, &common->skc_v6_daddr);
	}
	r.mss = tp->mss_cache;
	r.cwnd = tp->snd_cwnd;
	r.ssthresh = tp->snd_ssthresh;
	r.srtt_us = tp->srtt_us;
	r.delivered = tp->delivered;
	r.delivered_ce = tp->delivered_ce;
	if (bpf_core_field_exists(tp->received_ce))
		r.received_ce = tp->received_ce;
	r.retransmits = tp->total_retrans;
	bpf_core_read(&r.control, sizeof(r.control), &tp->inet_conn.icsk_ca_priv);
	bpf_seq_write(seq, &r, sizeof(r));
	return 0;
}
