#!/usr/bin/env bash
# Starts vLLM's own Rust server over three simulated engines and prints what to try on them. Ctrl-C ends everything.
#
#   conformance/demo.sh
#
# PORT (8000) is the server's, CONTROL_PORT (8001) the engines' control API, HANDSHAKE_PORT (29550) where engines and server
# meet; all on 127.0.0.1. Needs bin/vllm-vcr (make build), curl, and python3 with pip to fetch the server once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
engine=${VLLM_VCR_BIN:-$here/../bin/vllm-vcr}
port=${PORT:-8000}
control=${CONTROL_PORT:-8001}
handshake=${HANDSHAKE_PORT:-29550}
logs=
pids=()

say() { echo "demo: $*" >&2; }

die() {
    say "$*"
    exit 1
}

# cleanup asks every child to end, kills the group of one that has not gone after 5 s, and waits for all.
cleanup() {
    trap '' INT TERM
    [ ${#pids[@]} -gt 0 ] || return 0
    kill -TERM "${pids[@]}" 2>/dev/null || true
    for _ in $(seq 50); do
        kill -0 "${pids[@]}" 2>/dev/null || break
        sleep 0.1
    done
    for pid in "${pids[@]}"; do
        kill -KILL -- "-$pid" 2>/dev/null || true
    done
    wait "${pids[@]}" 2>/dev/null || true
    rm -rf "$logs"
    say "ended"
}
trap cleanup EXIT
trap 'exit 0' INT # the way to end it
trap 'exit 143' TERM

need_free() {
    local name=$1 number=$2
    if (exec 3<>"/dev/tcp/127.0.0.1/$number") 2>/dev/null; then
        die "port $number is taken; choose another: $name=$((number + 1000)) make demo"
    fi
}

# start NAME COMMAND… runs a child in the background with its output in the log folder. It leads a session of its own, so that Ctrl-C
# reaches this script alone, which ends its children in order.
start() {
    local name=$1
    shift
    setsid "$@" >"$logs/$name.log" 2>&1 </dev/null &
    pids+=($!)
}

# fail_with_logs tells which of the two has ended by itself, and what it said last.
fail_with_logs() {
    for name in server engines; do
        say "the last lines of $name:"
        tail -n 15 "$logs/$name.log" >&2
    done
    die "$1"
}

all_run() {
    local pid
    for pid in "${pids[@]}"; do
        kill -0 "$pid" 2>/dev/null || return 1
    done
}

answers() { curl -sf -o /dev/null "http://127.0.0.1:$1"; }

[ -x "$engine" ] || die "$engine is not there: make build"
command -v curl >/dev/null || die "curl is not installed"
need_free PORT "$port"
need_free CONTROL_PORT "$control"
need_free HANDSHAKE_PORT "$handshake"
server=$("$here/fetch-frontends.sh" 0.33.0)
logs=$(mktemp -d)

start server env HF_HUB_OFFLINE=1 NO_COLOR=1 "$server" serve "$here/testdata/model-dense" --served-model-name demo \
    --host 127.0.0.1 --port "$port" --data-parallel-size 3 --data-parallel-size-local 0 \
    --data-parallel-address 127.0.0.1 --data-parallel-rpc-port "$handshake"
start engines "$engine" play --engine-count 3 --handshake-address "tcp://127.0.0.1:$handshake" \
    --control-address "127.0.0.1:$control" --vocab-size 300

for _ in $(seq 300); do
    all_run || fail_with_logs "one of the two has ended"
    answers "$port/health" && answers "$control/health/ready" && break
    sleep 0.1
done
answers "$port/health" || fail_with_logs "no answer within 30 s"

cat <<END

vLLM's server answers on 127.0.0.1:$port, three engines of vllm-vcr are behind it, steered on 127.0.0.1:$control. Try:

  # a completion
  curl http://127.0.0.1:$port/v1/completions -H 'Content-Type: application/json' -d '{"model": "demo", "prompt": "Hello world", "max_tokens": 50}'

  # 200 ms between two tokens from now on; ask again, with "stream": true to watch them come
  curl -X PATCH http://127.0.0.1:$control/config -H 'Content-Type: application/json' -d '{"inter_token_latency": 200}'

  # what has reached the engines, together and one by one
  curl http://127.0.0.1:$control/stats
  curl http://127.0.0.1:$control/engines

  # every request in the log: tail -f $logs/engines.log
  curl -X PUT http://127.0.0.1:$control/log -H 'Content-Type: application/json' -d '{"filter": "vllm_vcr::engine=trace,info"}'

Ctrl-C ends everything.
END
wait -n "${pids[@]}" || true
fail_with_logs "one of the two has ended"
