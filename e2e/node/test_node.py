# SPDX-License-Identifier: Apache-2.0
"""The one-node Kubernetes comes up, refuses a second one, survives crashes, and leaves nothing behind.

Takes the machine's only node for itself: it fails at once when one is running. Needs root and nothing but
the standard library and pytest.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

NODE_SH = Path(__file__).with_name("node.sh")
RUN = Path("/run/k8s-agent-sandbox-node")
CGROUP = "k8s-agent-sandbox-node"
# Sysctls that count or measure something, and those of a single interface: they differ without a cause.
VOLATILE_SYSCTL = re.compile(
    r"^(fs\.(dentry-state|file-nr|inode-(nr|state)|aio-nr|quota\..*)|kernel\.(random\..*|ns_last_pid|pty\.nr|"
    r"sched_domain\..*)|net\.netfilter\.nf_conntrack_(count|buckets|max)|net\.nf_conntrack_max|"
    r"kernel\.perf_event_max_sample_rate|vm\.stat_refresh|net\.ipv[46]\.(conf|neigh)\.(?!all\.|default\.).*)$"
)
FIXED = ["/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods", "/run/containerd",
         "/run/netns", "/etc/cni", "/opt/cni", "/usr/libexec/kubernetes"]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def node(*arguments, check=True, env=None, **options):
    done = subprocess.run([NODE_SH, *arguments], capture_output=True, text=True, timeout=1200,
                          env={**os.environ, **(env or {})}, **options)
    if check:
        assert done.returncode == 0, f"node.sh {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def kubectl(*arguments, **options):
    return node("kubectl", *arguments, **options).stdout


# ---- what the machine looks like

def processes():
    """{(pid, start time): command line} of all processes with a command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if command and stat[0] != "Z":
            found[(folder.name, stat[19])] = command
    return found


def belongs_to_node(pid, data):
    """In the node's cgroup, in namespaces of its own, or started with the data folder in its arguments."""
    folder = Path("/proc") / pid
    try:
        if CGROUP in (folder / "cgroup").read_text():
            return True
        if any((folder / "ns" / kind).readlink() != Path(f"/proc/self/ns/{kind}").readlink() for kind in ("mnt", "net")):
            return True
        text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    return str(data).encode() in text or b"containerd-shim" in text


def rules(command):
    """Rules and chains, without counters, comments and the heads of the tables (an empty one may stay)."""
    found, table = set(), ""
    for line in output(f"{command}-save").splitlines():
        if line.startswith("*"):
            table = line
        elif line.startswith(":") and " ACCEPT " in line:
            continue
        elif line.startswith((":", "-A")):
            found.add(table + " " + re.sub(r" *\[[0-9:]+\]", "", line))
    return found


def cgroups():
    found = set()
    for root in {Path(line.split()[1]) for line in open("/proc/mounts") if line.split()[2].startswith("cgroup")}:
        found |= {str(child) for child in root.iterdir() if child.is_dir()}
        found |= set(output("find", str(root), "-type", "d", "-path", f"*{CGROUP}*").splitlines())
    return found


def sysctls():
    pairs = (line.split(" = ", 1) for line in output("sysctl", "-a").splitlines() if " = " in line)
    return {f"{name} = {value}" for name, value in pairs if not VOLATILE_SYSCTL.match(name)}


def files():
    found = set()
    for root in FIXED:
        if os.path.exists(root):
            found |= set(output("find", root, "-xdev").splitlines())
    return found


def machine():
    return {
        "mounts": {line.split()[4] for line in open("/proc/self/mountinfo")},
        "interfaces": set(os.listdir("/sys/class/net")),
        "addresses": {line.split("\\")[0] for line in output("ip", "-o", "-4", "address").splitlines()},
        "routes": set(output("ip", "-4", "route").splitlines()),
        "iptables": rules("iptables"),
        "ip6tables": rules("ip6tables"),
        "cgroups": cgroups(),
        "sysctls": sysctls(),
        "files": files(),
    }


def assert_nothing_left(before, before_processes, data):
    after = machine()
    for kind, things in before.items():
        assert sorted(after[kind] - things) == [], f"new {kind} after down"
        assert sorted(things - after[kind]) == [], f"lost {kind} after down"
    new = {pid: command for (pid, started), command in processes().items() if (pid, started) not in before_processes}
    left = {pid: command for pid, command in new.items() if belongs_to_node(pid, data)}
    assert left == {}, "processes left after down"
    assert not data.exists()
    assert not RUN.exists()


# ---- what runs on the node

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: k8s-agent-sandbox/pause:dev
      imagePullPolicy: Never
      ports: [{{containerPort: 80, hostPort: {port}}}]
      volumeMounts: [{{name: scratch, mountPath: /scratch}}]
      resources: {{limits: {{memory: 32Mi}}}}
  volumes: [{{name: scratch, emptyDir: {{medium: Memory}}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}
"""


def run_pods():
    names = ["one", "two"]
    text = "---".join(POD.format(name=name, port=31000 + number) for number, name in enumerate(names))
    kubectl("apply", "-f", "-", input=text)
    kubectl("wait", "--for=condition=Ready", "--timeout=60s", *(f"pod/{name}" for name in names))


def node_pids():
    return [int(pid) for pid, _ in processes() if Path(f"/proc/{pid}/cgroup").exists()
            and CGROUP in Path(f"/proc/{pid}/cgroup").read_text()]


def daemon_pids(data):
    return [int(path.read_text().split()[0]) for path in (data / "run").glob("*.pid")]


def wait_gone(pids):
    deadline = time.monotonic() + 10
    while any((pid, started) in processes() for pid, started in pids):
        assert time.monotonic() < deadline, "killed processes are still there"
        time.sleep(0.05)


def kill(pids):
    known = [key for key in processes() if int(key[0]) in pids]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_gone(known)


@pytest.fixture(scope="module")
def start():
    """The machine before any node of this module, and the data folder used by all of its tests."""
    assert os.getuid() == 0, "the node needs root"
    assert node("status", check=False).returncode == 3, "a node is running: stop it first (node.sh down)"
    node("build")
    # The first of a kind (the table nat, say) comes into being with the first node and may stay.
    state = {"machine": machine(), "processes": processes(), "data": Path("/var/lib/k8s-agent-sandbox-node")}
    yield state
    node("down", check=False)


@pytest.fixture
def running(start):
    if node("status", check=False).returncode != 0:
        node("up")
    return start["data"]


def test_up_is_ready_for_pods(start):
    done = node("up")
    assert "The node is up." in done.stdout
    assert node("status").stdout.count(" pid ") == 7
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    run_pods()


def test_second_up_names_the_running_node(running):
    before = node_pids()
    other = node("up", check=False, env={"K8S_AGENT_SANDBOX_NODE_DIR": "/var/tmp/other-node"})
    assert other.returncode == 1
    assert str(running) in other.stderr and "runs already" in other.stderr
    assert not os.path.exists("/var/tmp/other-node")
    assert set(before) <= set(node_pids())
    assert node("status").returncode == 0


def test_tokens_carry_an_audience(running):
    token = kubectl("create", "token", "default", "--audience", "k8s-agent-sandbox-mcp").strip()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
              "spec": {"token": token, "audiences": ["k8s-agent-sandbox-mcp"]}}
    status = json.loads(kubectl("create", "-o", "json", "-f", "-", input=json.dumps(review)))["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:default:default"
    review["spec"]["audiences"] = ["another"]
    status = json.loads(kubectl("create", "-o", "json", "-f", "-", input=json.dumps(review)))["status"]
    assert "authenticated" not in status


def test_audit_log_names_user_and_agent(running):
    log = running / "audit" / "audit.log"
    offset = log.stat().st_size
    kubectl("get", "configmaps", "-n", "default")
    with log.open() as lines:
        lines.seek(offset)
        mine = [event for event in map(json.loads, lines)
                if event["user"]["username"] == "kubernetes-admin"
                and event.get("objectRef", {}).get("resource") == "configmaps"]
    assert [(event["verb"], event["stage"]) for event in mine] == [("list", "ResponseComplete")]
    assert mine[0]["userAgent"].startswith("kubectl/")


def test_up_cleans_up_when_daemons_were_killed(running):
    """The containers outlive their daemons here; their processes must be gone after the next start."""
    run_pods()
    daemons = daemon_pids(running)
    containers = [pid for pid in node_pids() if pid not in daemons]
    assert len(daemons) == 7 and containers
    kill(daemons)
    status = node("status", check=False)
    assert status.returncode == 1 and "broken" in status.stdout
    alive = {key for key in processes() if int(key[0]) in containers}
    assert alive, "no container survived its daemon: the test shows nothing"
    done = node("up")
    assert "did not shut down" in done.stdout
    assert not alive & set(processes())
    assert kubectl("get", "pods", "-A", "-o", "name") == ""
    run_pods()


def test_up_cleans_up_when_everything_was_killed(running):
    run_pods()
    while pids := node_pids():
        kill(pids)
    assert node("up").returncode == 0
    run_pods()


def test_up_cleans_up_after_a_reboot(running):
    """As far as it can be had without one: nothing runs, and /run is empty."""
    run_pods()
    while pids := node_pids():
        kill(pids)
    shutil.rmtree(RUN)
    assert "did not shut down" in node("up").stdout
    run_pods()


def test_up_cleans_up_when_up_was_killed(start):
    node("down")
    for last in ("Writing certificates", "Starting the API server", "Starting controllers"):
        with subprocess.Popen([NODE_SH, "up"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as starting:
            assert any(last in line for line in starting.stdout), f"it never said '{last}'"
            starting.kill()
    node("up")
    run_pods()


def test_down_leaves_nothing(start, running):
    run_pods()
    node("down")
    assert node("status", check=False).returncode == 3
    assert_nothing_left(start["machine"], start["processes"], start["data"])


def test_down_after_a_crash_leaves_nothing(start):
    data = Path("/var/tmp/k8s-agent-sandbox-node-test/data")
    node("up", env={"K8S_AGENT_SANDBOX_NODE_DIR": str(data)})
    run_pods()
    kill(daemon_pids(data))
    node("down")
    data.parent.rmdir()
    assert_nothing_left(start["machine"], start["processes"], data)


def test_down_without_a_node_is_no_error(start):
    assert "No node" in node("down").stdout
    assert node("kubeconfig", check=False).returncode == 1
