#!/usr/bin/env python3
"""XCo's experiments live, with iperf3 and ping, at a tenth of the paper's rate.

    sudo repro/xco/live.py [--shallows PATH] [--seconds 5] [receiver] [ping] [conserve]

Each run is one of `shallows run --live`; what applications received is read from iperf3's servers.
Prints a table for each experiment. The scenarios and results of all runs stay in out/xco-live.
"""

import argparse
import json
import pathlib
import subprocess
import sys

OUT = pathlib.Path("out/xco-live")

SCENARIO = """
name = "{name}"
until = "{until}s"
completion = "receiver"
[topology.star]
hosts = {hosts}
rate = "100Mbps"
delay = "20us"
[ports]
host = {{ framing = "ethernet", buffer = "unlimited", scheduler = "fifo" }}
[ports.switch]
framing = "ethernet"
buffer = {{ shared = {{ size = "128KB" }} }}
scheduler = "fifo"
[transport]
controller = "cubic"
ecn = "off"
initial-window = 3
rto = {{ initial = "200ms", minimum = "200ms" }}
{xco}
[live]
probes = [{probes}]
commands = [
{commands}
]
"""

# Slots are ten times as long as the paper's 2 and 10 ms, for a tenth of its rate.
VARIANTS = {
    "none": "",
    "slots 20 ms": '[hosts.xco]\nslot = "20ms"\n',
    "slots 100 ms": '[hosts.xco]\nslot = "100ms"\n',
    "rate limits": '[hosts.xco]\nslot = "20ms"\ndirectives = "rate-limit"\n',
}


def commands(senders, receiver, seconds):
    """A server and a client of iperf3 for each sender: (host, "tcp" or Mbps of UDP, start, length)."""
    lines = []
    for number, (host, kind, start, length) in enumerate(senders):
        port = 5200 + number
        # Datagrams of 64 KB, as netperf's.
        how = "" if kind == "tcp" else f" -u -l 64000 -b {kind}M"
        server = f"iperf3 -s -1 -J -p {port}"
        client = f"iperf3 -c {{h{receiver}}} -p {port} -t {length or seconds}{how}"
        lines.append(f'{{ host = {receiver}, run = "{server}", role = "server", may-fail = true }},')
        lines.append(f'{{ host = {host}, run = "{client}", start = "{300 + start}ms", may-fail = true }},')
    return "\n".join(lines)


def run(args, name, variant, senders, receiver, hosts, probes=""):
    """Runs a scenario and gives its directory, what each sender got through in Mbps, and its verdict."""
    name = f"{name}-{variant}".replace(" ", "-")
    text = SCENARIO.format(
        name=name,
        until=args.seconds + 2,
        hosts=hosts,
        xco=VARIANTS[variant],
        probes=probes,
        commands=commands(senders, receiver, args.seconds),
    )
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.toml"
    path.write_text(text)
    out = OUT / name
    done = subprocess.run(
        [args.shallows, "run", "--live", path, "--out", out],
        capture_output=True,
        text=True,
        check=False,
    )
    live = out / "live.json"
    if not live.exists():
        sys.exit(f"{path}: {done.stderr}")
    received = []
    for number in range(len(senders)):
        said = out / "commands" / f"{2 * number}-h{receiver}.stdout"
        try:
            intervals = json.loads(said.read_text())["intervals"]
        except (ValueError, KeyError, OSError):
            intervals = []
        seconds = senders[number][3] or args.seconds
        received.append(sum(i["sum"]["bytes"] for i in intervals) * 8 / seconds / 1e6)
    verdict = "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
    return json.loads(live.read_text()), received, verdict


def drops(live):
    links = live["switch"]["links"]
    return sum(n for link in links for queue in link["queues"] for _, n in queue["drops"])


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def receiver(args):
    """Figures 3 and 13: five senders to one receiver, of which some send UDP."""
    row("UDP senders", "variant", "received, Mbps", "of it TCP", "drops", "verdict")
    for udp in args.udp:
        for variant in args.variants:
            senders = [(host, 100 if host < udp else "tcp", 0, None) for host in range(5)]
            live, received, verdict = run(args, f"receiver-{udp}", variant, senders, 5, 6)
            tcp = sum(received[udp:])
            row(udp, variant, f"{sum(received):.1f}", f"{tcp:.1f}", drops(live), verdict)


def ping(args):
    """Figures 7 and 16: ping beside two TCP and two UDP senders to the same receiver."""
    row("variant", "RTT mean, ms", "p50", "p99", "lost", "verdict")
    for variant in args.variants:
        senders = [(0, 100, 0, None), (1, 100, 0, None), (2, "tcp", 0, None), (3, "tcp", 0, None)]
        probes = '{ from = 4, to = 5, every = "10ms" }'
        live, _, verdict = run(args, "ping", variant, senders, 5, 6, probes)
        rtt = live["rtts"][0]
        times = [f"{rtt[key] / 1000:.2f}" for key in ("mean_us", "p50_us", "p99_us")]
        row(variant, *times, f"{rtt['lost']} of {rtt['sent']}", verdict)


def conserve(args):
    """Figures 18 and 19: one sender with as much as it can, three with 5 Mbps each."""
    row("variant", "received, Mbps", "of the three slow ones", "verdict")
    for variant in args.variants:
        senders = [(0, 100, 0, None)] + [(host, 5, 0, None) for host in (1, 2, 3)]
        _, received, verdict = run(args, "conserve", variant, senders, 4, 5)
        slow = ", ".join(f"{mbps:.1f}" for mbps in received[1:])
        row(variant, f"{sum(received):.1f}", slow, verdict)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shallows", default="target/release/shallows")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--udp", type=int, nargs="+", default=[0, 2, 5])
    parser.add_argument("--variants", nargs="+", default=["none", "slots 20 ms"])
    every = {"receiver": receiver, "ping": ping, "conserve": conserve}
    parser.add_argument("experiments", nargs="*", default=list(every), help=", ".join(every))
    args = parser.parse_args()
    for name in args.experiments:
        print(f"\n{every[name].__doc__}\n")
        every[name](args)


if __name__ == "__main__":
    main()
