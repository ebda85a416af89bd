#!/bin/bash
# Checks the protocol: format and lint, no change that breaks a client of the baseline,
# and generated code that is what buf.gen.yaml makes of it. Needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."

buf() { go tool -modfile=tools/go.mod buf "$@"; }

buf format --diff --exit-code
buf lint
buf breaking --against leafpb/baseline.binpb

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
buf generate -o "$fresh"
mkdir "$fresh/committed"
cp leafpb/*.pb.go "$fresh/committed"
if ! diff -ru "$fresh/committed" "$fresh/leafpb"; then
	echo "leafpb: the generated code is not that of the protocol: go tool -modfile=tools/go.mod buf generate" >&2
	exit 1
fi
