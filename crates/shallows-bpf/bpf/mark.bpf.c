/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Gives the sockets of a cgroup a QJUMP level: their priority, the DSCP that goes with it, and a
 * small send buffer, for early back-pressure (§4). A socket is marked as it is made, bound,
 * connected or accepted, and as it sends a datagram to an address.
 */
#include "kernel.h"

#define AF_INET 2
#define AF_INET6 10
#define SOL_SOCKET 1
#define SOL_IP 0
#define SOL_IPV6 41
#define SO_SNDBUF 7
#define SO_PRIORITY 12
#define IP_TOS 1
#define IPV6_TCLASS 67
#define SOL_TCP 6
#define TCP_BPF_SNDCWND_CLAMP 1002
#define BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB 4
#define BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB 5

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_sock {
	__u32 family;
	__u32 priority;
};

struct bpf_sock_addr {
	__u32 family;
};

struct bpf_sock_ops {
	__u32 op;
	__u32 family;
};
#pragma clang attribute pop

/* Its twin is in kernel/mark.rs. */
struct mark {
	int priority;
	int traffic_class;
	int send_buffer; /* 0 for the kernel's own */
	/* The most segments in flight, which also bounds GSO packets; 0 for the kernel's own. */
	int window;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mark);
} marks SEC(".maps");

/* The priority last: setting IP_TOS changes it. */
static __always_inline void apply(void *ctx, __u32 family)
{
	__u32 zero = 0;
	struct mark *m = bpf_map_lookup_elem(&marks, &zero);
	int value;

	if (!m || (family != AF_INET && family != AF_INET6))
		return;
	value = m->traffic_class;
	/* A socket of IPv6 may speak IPv4 too. */
	bpf_setsockopt(ctx, SOL_IP, IP_TOS, &value, sizeof(value));
	if (family == AF_INET6)
		bpf_setsockopt(ctx, SOL_IPV6, IPV6_TCLASS, &value, sizeof(value));
	value = m->send_buffer;
	if (value)
		bpf_setsockopt(ctx, SOL_SOCKET, SO_SNDBUF, &value, sizeof(value));
	value = m->priority;
	bpf_setsockopt(ctx, SOL_SOCKET, SO_PRIORITY, &value, sizeof(value));
}

SEC("cgroup/sock_create")
int create(struct bpf_sock *sk)
{
	__u32 zero = 0;
	struct mark *m = bpf_map_lookup_elem(&marks, &zero);

	if (m && (sk->family == AF_INET || sk->family == AF_INET6))
		sk->priority = m->priority;
	return 1;
}

SEC("cgroup/bind4")
int bind4(struct bpf_sock_addr *ctx)
{
	apply(ctx, AF_INET);
	return 1;
}

SEC("cgroup/bind6")
int bind6(struct bpf_sock_addr *ctx)
{
	apply(ctx, AF_INET6);
	return 1;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	apply(ctx, AF_INET);
	return 1;
}

SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	apply(ctx, AF_INET6);
	return 1;
}

SEC("cgroup/sendmsg4")
int sendmsg4(struct bpf_sock_addr *ctx)
{
	apply(ctx, AF_INET);
	return 1;
}

SEC("cgroup/sendmsg6")
int sendmsg6(struct bpf_sock_addr *ctx)
{
	apply(ctx, AF_INET6);
	return 1;
}

SEC("sockops")
int established(struct bpf_sock_ops *ctx)
{
	__u32 zero = 0;
	struct mark *m;
	int value;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	apply(ctx, ctx->family);
	m = bpf_map_lookup_elem(&marks, &zero);
	if (m && m->window) {
		value = m->window;
		bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &value, sizeof(value));
	}
	return 1;
}
