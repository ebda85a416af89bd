#!/bin/sh
# Builds the kube-apiserver of the Kubernetes whose types the tests use, from Go modules, starts it on
# an etcd, and runs the tests that need a server. The first build takes some minutes on all
# processors, and leaves a program of 120 MB in bin.
set -eu
cd "$(dirname "$0")"
minor=$(go list -m -f '{{.Version}}' k8s.io/api) # v0.37.2
version=v1${minor#v0}
program=$PWD/../../bin/kube-apiserver-$version
work=$(mktemp -d)
etcd= server=
trap 'kill -9 $server $etcd 2>/dev/null || true; wait; rm -rf "$work"' EXIT

if [ ! -x "$program" ]; then
	mkdir "$work/source"
	go mod download "k8s.io/kubernetes@$version"
	theirs=$(go env GOMODCACHE)/k8s.io/kubernetes@$version/go.mod
	{
		echo "module apiserver"
		grep '^go ' "$theirs"
		echo "require k8s.io/kubernetes $version"
		# The repository has these modules in a folder; they are published one by one.
		grep -oE 'k8s.io/[a-z-]+ => ./staging' "$theirs" | while read -r name rest; do echo "replace $name => $name $minor"; done
	} >"$work/source/go.mod"
	cat >"$work/source/main.go" <<'GO'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
GO
	(cd "$work/source" && GOFLAGS=-mod=mod go build -ldflags='-s -w' -o "$program" .)
fi

openssl genrsa -out "$work/key" 2048 2>/dev/null
echo 'a-token-of-this-test,admin,1,system:masters' >"$work/tokens"
etcd --data-dir "$work/etcd" --listen-client-urls http://127.0.0.1:23790 --advertise-client-urls http://127.0.0.1:23790 \
	--listen-peer-urls http://127.0.0.1:23800 --initial-advertise-peer-urls http://127.0.0.1:23800 \
	--initial-cluster default=http://127.0.0.1:23800 >"$work/etcd.log" 2>&1 &
etcd=$!
"$program" --etcd-servers http://127.0.0.1:23790 --bind-address 127.0.0.1 --secure-port 16443 --cert-dir "$work/certs" \
	--token-auth-file "$work/tokens" --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 \
	--service-account-issuer https://kubernetes.default.svc --service-account-key-file "$work/key" \
	--service-account-signing-key-file "$work/key" --disable-admission-plugins ServiceAccount >"$work/server.log" 2>&1 &
server=$!
cat >"$work/kubeconfig" <<'YAML'
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:16443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: a-token-of-this-test}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
YAML
export KUBECONFIG="$work/kubeconfig"
until kubectl get --raw /readyz >/dev/null 2>&1; do
	kill -0 $server || { tail -n 20 "$work/server.log"; exit 1; }
	sleep 1
done
LEAF_TEST_KUBERNETES=$version go test -count=1 -run 'TestServer|TestKubernetesDocument' -v .
