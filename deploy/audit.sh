#!/usr/bin/env bash
# Looks for known vulnerabilities in what the program and its tools call, with govulncheck.
#
#   deploy/audit.sh GOVULNCHECK VULNDB
#
# GOVULNCHECK is its package and version, as go run takes it. VULNDB is the database: a version of golang.org/x/vulndb, say
# latest, whose reports come as a module, from wherever modules come from; or a URL, say https://vuln.go.dev, which is newer by
# days and which not every machine reaches.
set -euo pipefail
shopt -s inherit_errexit

tool=${1:?usage: deploy/audit.sh GOVULNCHECK VULNDB}
database=${2:?usage: deploy/audit.sh GOVULNCHECK VULNDB}
go=${GO:-go}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case $database in
*://*) url=$database ;;
*)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # Outside of this module: what the tool needs is none of its dependencies.
    module=$(cd "$work" && "$go" mod download -json "golang.org/x/vulndb@$database")
    field() { sed -n "s/^\t\"$1\": \"\(.*\)\",\{0,1\}$/\1/p" <<<"$module"; }
    (cd "$work" && "$go" run "golang.org/x/vulndb/cmd/indexdb@$(field Version)" -vulns "$(field Dir)/data/osv" -out "$work/db")
    url=file://$work/db
    echo "audit: database: golang.org/x/vulndb $(field Version)" >&2
    ;;
esac

"$go" run "$tool" -db "$url" ./...
