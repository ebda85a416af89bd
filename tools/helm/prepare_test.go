package helm_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// TestPrepareReachesTheDatabase: in a namespace that lets out only what a policy names, the Job needs one before the nodes have
// theirs, and reaches the same.
func TestPrepareReachesTheDatabase(t *testing.T) {
	objects, _, err := render(t, values{"networkPolicy": values{"egressPorts": []any{4711}}})
	if err != nil {
		t.Fatal(err)
	}
	policy := strictly[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy ids-leaf-prepare")
	job := strictly[batchv1.Job](t, objects, "Job ids-leaf-prepare")
	if !selects(policy.Spec.PodSelector.MatchLabels, job.Spec.Template.Labels) || selects(policy.Spec.PodSelector.MatchLabels, strictly[appsv1.Deployment](t, objects, "Deployment ids-leaf").Spec.Template.Labels) {
		t.Errorf("the policy is for %v, the Job has %v", policy.Spec.PodSelector.MatchLabels, job.Spec.Template.Labels)
	}
	if a := policy.Annotations; a["helm.sh/hook"] != job.Annotations["helm.sh/hook"] || a["helm.sh/hook-weight"] != "-1" || a["helm.sh/hook-delete-policy"] != job.Annotations["helm.sh/hook-delete-policy"] {
		t.Errorf("the policy is made %v, the Job %v", a, job.Annotations)
	}
	to := func(p *networkingv1.NetworkPolicy) (ports []string) {
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				if len(rule.To) == 0 { // anywhere
					ports = append(ports, port.Port.String())
				}
			}
		}
		return ports
	}
	nodes := to(strictly[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy ids-leaf"))
	if got := to(policy); !slices.Equal(got, nodes) || !slices.Contains(got, "4711") {
		t.Errorf("the Job reaches ports %v, nodes %v", got, nodes)
	}
}

// TestPrepare: what the Job makes is for nodes with the configuration of the chart, so that they
// take a worker ID of it.
func TestPrepare(t *testing.T) {
	program := build(t)
	for _, name := range []string{"default", "own layout", "ordinals"} {
		objects, _, err := render(t, variants[name])
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		leaf := func(args ...string) {
			t.Helper()
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "/etc/leaf", dir)
			}
			if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
				t.Errorf("%s: leaf %q: %v\n%s", name, args, err, out)
			}
		}
		for file, config := range map[string]string{"config/leaf.yaml": "ConfigMap ids-leaf-prepare", "nodes/leaf.yaml": "ConfigMap ids-leaf"} {
			text := strings.NewReplacer("/etc/leaf", dir, "/data/leaf", filepath.Join(dir, "data")).Replace(strictly[corev1.ConfigMap](t, objects, config).Data["leaf.yaml"])
			write(t, filepath.Join(dir, file), text)
		}
		write(t, filepath.Join(dir, "store/url"), "sqlite:"+filepath.Join(dir, "x.db"))
		job := strictly[batchv1.Job](t, objects, "Job ids-leaf-prepare").Spec.Template.Spec
		if mounted := job.Volumes[slices.IndexFunc(job.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil })]; mounted.ConfigMap.Name != "ids-leaf-prepare" {
			t.Errorf("%s: the Job reads %q", name, mounted.ConfigMap.Name)
		}
		for _, c := range slices.Concat(job.InitContainers, job.Containers) {
			leaf(slices.Clone(c.Args)...)
		}
		if name != "ordinals" {
			leaf("worker", "init", "--config", "/etc/leaf/nodes/leaf.yaml")
		}
	}
}

// TestPrepareRunsWhereNodesRun: where every machine has a taint, or the namespace a quota, the Job of a pod that says nothing
// of it never ends, and so no installation does. The image comes from where nodes have it, too.
func TestPrepareRunsWhereNodesRun(t *testing.T) {
	objects, _, err := render(t, values{
		"nodeSelector": values{"pool": "ids"}, "tolerations": []any{values{"key": "only", "operator": "Exists"}}, "priorityClassName": "high",
		"affinity":  values{"nodeAffinity": values{"preferredDuringSchedulingIgnoredDuringExecution": []any{}}},
		"resources": values{"limits": values{"cpu": "1", "memory": "512Mi"}},
		"image":     values{"pullPolicy": "Never"},
	})
	if err != nil {
		t.Fatal(err)
	}
	node := strictly[appsv1.Deployment](t, objects, "Deployment ids-leaf").Spec.Template.Spec
	job := strictly[batchv1.Job](t, objects, "Job ids-leaf-prepare").Spec.Template.Spec
	where := func(s corev1.PodSpec) string {
		return fmt.Sprintf("%q %+v %+v %q", s.NodeSelector, s.Tolerations, s.Affinity, s.PriorityClassName)
	}
	if len(node.Tolerations) != 1 || node.NodeSelector["pool"] != "ids" || node.Affinity == nil || where(job) != where(node) {
		t.Errorf("the Job runs at %s, nodes at %s", where(job), where(node))
	}
	for _, c := range slices.Concat(job.InitContainers, job.Containers) {
		if got, want := c.Resources.Limits.Cpu(), node.Containers[0].Resources.Limits.Cpu(); want.IsZero() || !got.Equal(*want) {
			t.Errorf("container %s may use %v of a processor, a node %v", c.Name, got, want)
		}
		if c.ImagePullPolicy != corev1.PullNever {
			t.Errorf("container %s pulls its image %q", c.Name, c.ImagePullPolicy)
		}
	}
}
