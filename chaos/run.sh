#!/usr/bin/env bash
# Runs the tests that docs/reliability.md names for rows of the fault matrix, one folder after the other, with bin/vllm-vcr.
#
#   chaos/run.sh [-short] [ROW…]       rows such as F12; none = every row. -short = the tests of this folder alone, the
#                                      longest shortened, without the image, which has a target of its own
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

short=
but='^$'
folders='[a-z/-]+'
if [ "${1-}" = -short ]; then
    short=-short folders=chaos but=TestF60_Image
    shift
fi
rows=$(IFS='|'; echo "${*:-F[0-9]+|Cycles}")
names=$(grep -E "^\| ($rows) \|" docs/reliability.md | grep -oE "\`$folders/Test[A-Za-z0-9_]+\`" | tr -d '`' | grep -v "$but" | sort -u) || {
    echo "chaos: docs/reliability.md has no row $*" >&2
    exit 2
}
export VLLM_VCR_BIN="$PWD/bin/vllm-vcr"
failed=
for folder in $(sed 's|/[^/]*$||' <<<"$names" | sort -u); do
    tests=$(sed -n "s|^$folder/\(Test[^/]*\)\$|\1|p" <<<"$names" | paste -sd '|')
    echo "=== $folder (after $SECONDS s)"
    "${GO:-go}" test -tags chaos,conformance -count=1 -timeout 30m $short -v -run "^($tests)\$" "./$folder" |
        grep --line-buffered -vE '^=== (RUN .*/|PAUSE|CONT|NAME)|^ +--- PASS' || failed="$failed $folder"
done
[ -z "$failed" ] || {
    echo "chaos: failed:$failed" >&2
    exit 1
}
echo "chaos: $(wc -l <<<"$names") tests passed in $SECONDS s"
