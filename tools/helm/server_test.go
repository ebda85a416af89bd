package helm_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// cluster is a namespace of a real kube-apiserver, which make test-kubernetes starts.
type cluster struct{ namespace string }

func newCluster(t *testing.T, namespace string) cluster {
	t.Helper()
	if os.Getenv("LEAF_TEST_KUBERNETES") == "" {
		t.Skip("SKIPPED: make test-kubernetes starts the server that this test needs")
	}
	c := cluster{namespace}
	for _, command := range [][]string{
		{"create", "namespace", namespace},
		{"label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted"},
	} {
		if out, err := c.kubectl(t, "", command...); err != nil {
			t.Fatalf("kubectl %q: %v\n%s", command, err, out)
		}
	}
	return c
}

func (c cluster) kubectl(t *testing.T, object string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", append([]string{"--namespace=" + c.namespace}, args...)...)
	cmd.Stdin = strings.NewReader(object)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestServerTakesManifests: a real kube-apiserver takes every object of every variant, without a
// warning of a namespace for restricted pods. It does not know ServiceMonitor, a kind of Prometheus.
func TestServerTakesManifests(t *testing.T) {
	c := newCluster(t, "manifests")
	apply := func(object string) (string, error) {
		return c.kubectl(t, object, "apply", "--dry-run=server", "--validate=strict", "--filename=-")
	}
	for name, v := range variants {
		objects, _, err := render(t, v)
		if err != nil {
			t.Fatal(err)
		}
		delete(objects, "ServiceMonitor ids-leaf")
		all := strings.Join(slices.Collect(maps.Values(objects)), "\n---\n")
		if out, err := apply(all); err != nil || strings.Contains(out, "Warning") || strings.Count(out, "created (server dry run)") != len(objects) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	objects, _, _ := render(t, nil)
	deployment := objects["Deployment ids-leaf"]
	if out, err := apply(strings.Replace(deployment, "replicas:", "replica:", 1)); err == nil {
		t.Errorf("the server takes a field that does not exist: %s", out)
	}
	if out, _ := apply(strings.Replace(deployment, "runAsNonRoot: true", "runAsNonRoot: false", 1)); !strings.Contains(out, "Warning") {
		t.Errorf("the server does not warn of a pod of root: %s", out)
	}
}

// TestServerTakesPods: the server makes the pods of the templates, which no controller makes here.
func TestServerTakesPods(t *testing.T) {
	c := newCluster(t, "pods")
	objects, _, err := render(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, template := range map[string]corev1.PodTemplateSpec{
		"node":    strictly[appsv1.Deployment](t, objects, "Deployment ids-leaf").Spec.Template,
		"prepare": strictly[batchv1.Job](t, objects, "Job ids-leaf-prepare").Spec.Template,
	} {
		pod := corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.APIVersion, pod.Kind, pod.Name = "v1", "Pod", name
		text, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := c.kubectl(t, string(text), "create", "--validate=strict", "--filename=-"); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestServerKeepsWorkerIDs is TestWorkerIDsOfARunningSet on a real server.
func TestServerKeepsWorkerIDs(t *testing.T) {
	c := newCluster(t, "ordinals")
	apply := func(offset, replicas int) (string, error) {
		objects, _, err := render(t, values{"kind": "StatefulSet", "replicas": replicas, "snowflake": values{"workerOffset": offset}})
		if err != nil {
			t.Fatal(err)
		}
		return c.kubectl(t, objects["StatefulSet ids-leaf"], "apply", "--filename=-")
	}
	if out, err := apply(512, 3); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := apply(512, 7); err != nil || strings.Contains(out, "unchanged") {
		t.Errorf("more replicas: %v\n%s", err, out)
	}
	if out, err := apply(511, 7); err == nil || !strings.Contains(out, "is invalid") {
		t.Errorf("other worker IDs: %v\n%s", err, out)
	}
}
