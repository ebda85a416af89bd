package helm_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// values of one test, as in a values file.
type values = map[string]any

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir("../../deploy/helm/leaf")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns what helm install would send, by kind and name, and the notes.
func render(t *testing.T, v values) (objects map[string]string, notes string, err error) {
	t.Helper()
	c := load(t)
	v, err = chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "ids", Namespace: "shop", IsInstall: true}, nil)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(c, v)
	if err != nil {
		return nil, "", err
	}
	objects = map[string]string{}
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = text
			continue
		}
		for text := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(text) == "" {
				continue
			}
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(text), &head); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			if head.Kind != "" {
				objects[head.Kind+" "+head.Metadata.Name] = text
			}
		}
	}
	return objects, notes, nil
}

// serviceMonitor has the fields that the chart may use of monitoring.coreos.com/v1.
type serviceMonitor struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		JobLabel string `json:"jobLabel"`
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
			Scheme   string `json:"scheme"`
			TLS      struct {
				InsecureSkipVerify bool `json:"insecureSkipVerify"`
			} `json:"tlsConfig"`
		} `json:"endpoints"`
	} `json:"spec"`
}

func typeOf(kind string) any {
	switch kind {
	case "Deployment":
		return &appsv1.Deployment{}
	case "StatefulSet":
		return &appsv1.StatefulSet{}
	case "Job":
		return &batchv1.Job{}
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "Service":
		return &corev1.Service{}
	case "PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	case "NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	case "ServiceMonitor":
		return &serviceMonitor{}
	}
	return nil
}

// strictly reads an object as its Kubernetes type: an unknown field is an error.
func strictly[T any](t *testing.T, objects map[string]string, name string) *T {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict([]byte(objects[name]), &object); err != nil || objects[name] == "" {
		t.Fatalf("%s: %v\n%s", name, err, objects[name])
	}
	return &object
}

var variants = map[string]values{
	"default":       {},
	"one mode":      {"segment": values{"enabled": false}, "readiness": values{"mode": "snowflake"}, "replicas": 1},
	"etcd":          {"snowflake": values{"registry": "etcd", "registryAddress": "etcd:2379"}, "segment": values{"clusterFence": "etcd://etcd:2379/leaf"}},
	"etcd with TLS": {"segment": values{"clusterFence": "etcds://etcd:2379/leaf"}},
	"ordinals":      {"kind": "StatefulSet", "snowflake": values{"workerOffset": 512}, "persistence": values{"storageClass": "fast"}},
	"all":           {"auth": values{"existingSecret": "tokens"}, "tls": values{"existingSecret": "cert"}, "config": "limit:\n  refresh: 5s\n", "metrics": values{"serviceMonitor": values{"enabled": true, "labels": values{"release": "prometheus"}}}, "imagePullSecrets": []any{values{"name": "registry"}}, "podLabels": values{"team": "ids"}, "podAnnotations": values{"a": "b"}, "nodeSelector": values{"disk": "ssd"}, "tolerations": []any{values{"key": "ids", "operator": "Exists"}}, "affinity": values{"nodeAffinity": values{}}, "priorityClassName": "high", "service": values{"annotations": values{"a": "b"}}, "networkPolicy": values{"from": []any{values{"namespaceSelector": values{}}}}},
	"certificates":  {"tls": values{"existingSecret": "cert"}, "config": "tls:\n  client-ca: /etc/leaf/tls/ca.crt\norder: { server-name: leaf.example.com, ca: /etc/leaf/tls/ca.crt }\n", "readiness": values{"mode": "segment"}},
	"own layout":    {"config": "snowflake:\n  layout: js53\n  namespace: shop\n"},
	"nothing extra": {"prepare": values{"enabled": false}, "podDisruptionBudget": values{"enabled": false}, "networkPolicy": values{"enabled": false}, "goMemLimit": ""},
}

// TestManifests: every object of every variant is one that Kubernetes knows field by field.
func TestManifests(t *testing.T) {
	for name, v := range variants {
		objects, notes, err := render(t, v)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for object, text := range objects {
			kind, _, _ := strings.Cut(object, " ")
			into := typeOf(kind)
			if into == nil {
				t.Errorf("%s: this test does not know %s", name, object)
			} else if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, object, err, text)
			}
		}
		if !strings.Contains(notes, "leaf tag create") {
			t.Errorf("%s: the notes are %q", name, notes)
		}
	}
	objects, _, _ := render(t, nil)
	want := []string{"ConfigMap ids-leaf", "ConfigMap ids-leaf-prepare", "Deployment ids-leaf", "Job ids-leaf-prepare", "NetworkPolicy ids-leaf", "NetworkPolicy ids-leaf-prepare", "PodDisruptionBudget ids-leaf", "Service ids-leaf", "Service ids-leaf-nodes"}
	if got := slices.Sorted(maps.Keys(objects)); !slices.Equal(got, want) {
		t.Errorf("by default the chart makes %q, want %q", got, want)
	}
	var mistyped appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(strings.Replace(objects["Deployment ids-leaf"], "replicas:", "replica:", 1)), &mistyped); err == nil {
		t.Error("a mistyped field is not noticed")
	}
}

// TestPods: what a pod must have whatever the values are.
func TestPods(t *testing.T) {
	for name, v := range variants {
		objects, _, err := render(t, v)
		if err != nil {
			t.Fatal(err)
		}
		var pod corev1.PodSpec
		if v["kind"] == "StatefulSet" {
			s := strictly[appsv1.StatefulSet](t, objects, "StatefulSet ids-leaf")
			pod = s.Spec.Template.Spec
			if s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || len(s.Spec.VolumeClaimTemplates) != 1 || objects["Service "+s.Spec.ServiceName] == "" {
				t.Errorf("%s: %+v", name, s.Spec)
			}
		} else {
			pod = strictly[appsv1.Deployment](t, objects, "Deployment ids-leaf").Spec.Template.Spec
		}
		c := pod.Containers[0]
		probes(t, name, v, c)
		s := c.SecurityContext
		if !*pod.SecurityContext.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" || *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
			t.Errorf("%s: the pod may do too much: %+v %+v", name, pod.SecurityContext, s)
		}
		if *pod.TerminationGracePeriodSeconds != 30 {
			t.Errorf("%s: the pod is killed after %d s", name, *pod.TerminationGracePeriodSeconds)
		}
	}
}

// probes: what restarts a pod asks for nothing but an answer, and goes past the public port, which
// clients can fill. Only what takes traffic away asks that port.
func probes(t *testing.T, name string, v values, c corev1.Container) {
	t.Helper()
	alive := []string{"/usr/bin/leaf", "status", "--quiet", "--alive", "--data-dir", "/data/leaf"}
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe} {
		if p == nil || p.Exec == nil || !slices.Equal(p.Exec.Command, alive) {
			t.Errorf("%s: a pod is restarted by %+v", name, p)
		}
	}
	mode := ""
	if r, ok := v["readiness"].(values); ok {
		mode = "?mode=" + r["mode"].(string)
	}
	scheme := corev1.URISchemeHTTP
	if v["tls"] != nil {
		scheme = corev1.URISchemeHTTPS
	}
	switch ready := c.ReadinessProbe; {
	case name == "certificates":
		if ready.Exec == nil || !slices.Equal(ready.Exec.Command, []string{"/usr/bin/leaf", "status", "--quiet", "--data-dir", "/data/leaf", "--mode", "segment"}) {
			t.Errorf("%s: without a certificate, readiness asks %+v", name, ready)
		}
	case ready.HTTPGet == nil || ready.HTTPGet.Path != "/readyz"+mode || ready.HTTPGet.Scheme != scheme:
		t.Errorf("%s: readiness asks %+v", name, ready)
	}
}

// TestWorkerIDsOfARunningSet: a rolling update to other ordinals gives a pod the worker ID of one
// that still runs. So the first one is in a part of the StatefulSet that Kubernetes lets nobody
// change: all of its specification but replicas, ordinals, template, updateStrategy,
// persistentVolumeClaimRetentionPolicy and minReadySeconds. The ConfigMap is another object, which an upgrade that
// is refused has changed already: a pod that is added or starts anew must not take its number from there.
func TestWorkerIDsOfARunningSet(t *testing.T) {
	fixed := func(v values) string {
		v["kind"] = "StatefulSet"
		objects, _, err := render(t, v)
		if err != nil {
			t.Fatal(err)
		}
		spec := strictly[appsv1.StatefulSet](t, objects, "StatefulSet ids-leaf").Spec
		first := ""
		for _, e := range spec.Template.Spec.Containers[0].Env {
			if e.Name == "LEAF_SNOWFLAKE_WORKER_OFFSET" {
				first = "from " + e.Value
			}
		}
		if claim := spec.VolumeClaimTemplates[0].Annotations["leaf/worker-ids"]; first != claim {
			t.Errorf("pods have worker IDs %q, the StatefulSet %q", first, claim)
		}
		spec.Replicas, spec.Ordinals, spec.Template, spec.UpdateStrategy = nil, nil, corev1.PodTemplateSpec{}, appsv1.StatefulSetUpdateStrategy{}
		text, err := yaml.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := fixed(values{"snowflake": values{"workerOffset": 512}})
	if fixed(values{"snowflake": values{"workerOffset": 511}}) == before || fixed(values{"config": "snowflake:\n  worker-offset: 511\n"}) == before {
		t.Error("worker IDs change by a rolling update")
	}
	if fixed(values{"snowflake": values{"workerOffset": 512}, "replicas": 7, "image": values{"tag": "2"}}) != before {
		t.Errorf("an upgrade is refused:\n%s", before)
	}
}

// TestNotesNameTheWorkerIDs: an operator compares the worker IDs of two StatefulSets by the notes.
func TestNotesNameTheWorkerIDs(t *testing.T) {
	for _, tc := range []struct {
		v    values
		want string
	}{
		{values{"kind": "StatefulSet", "snowflake": values{"workerOffset": 512}}, "Worker IDs are 512 to 514."},
		{values{"kind": "StatefulSet", "config": "snowflake:\n  worker-offset: 100\n"}, "Worker IDs are 100 to 102."},
		{values{"kind": "StatefulSet", "snowflake": values{"enabled": false}}, ""},
		{values{}, ""},
	} {
		_, notes, err := render(t, tc.v)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(notes, tc.want) || tc.want == "" && strings.Contains(notes, "Worker IDs") {
			t.Errorf("notes of %v do not say %q:\n%s", tc.v, tc.want, notes)
		}
	}
}

// TestNodesReachNodes: whatever else may ask for IDs, a node asks the others for the time (http) and takes calls for tags in strict
// order to their owner (grpc). Those of another release on the same database are among them.
func TestNodesReachNodes(t *testing.T) {
	for name, v := range map[string]values{"all pods": nil, "one namespace": {"networkPolicy": values{"from": []any{
		values{"namespaceSelector": values{"matchLabels": values{"team": "shop"}}},
	}}}} {
		objects, _, err := render(t, v)
		if err != nil {
			t.Fatal(err)
		}
		spec := strictly[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy ids-leaf").Spec
		ofAnother := maps.Clone(spec.PodSelector.MatchLabels) // release on the same database
		ofAnother["app.kubernetes.io/instance"] = "other"
		in, out := map[string]bool{}, map[string]bool{}
		open := func(to map[string]bool, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
			for _, peer := range peers {
				for _, port := range ports {
					if peer.PodSelector != nil && len(peer.PodSelector.MatchLabels) > 0 && selects(peer.PodSelector.MatchLabels, spec.PodSelector.MatchLabels) && selects(peer.PodSelector.MatchLabels, ofAnother) {
						to[port.Port.String()] = true
					}
				}
			}
		}
		for _, rule := range spec.Ingress {
			open(in, rule.From, rule.Ports)
		}
		for _, rule := range spec.Egress {
			open(out, rule.To, rule.Ports)
		}
		if want := map[string]bool{"http": true, "grpc": true}; !maps.Equal(in, want) || !maps.Equal(out, want) {
			t.Errorf("%s: nodes take calls of nodes at %v and send them to %v; want %v", name, in, out, want)
		}
	}
}

// selects reports whether a selector takes what has these labels.
func selects(selector, has map[string]string) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Keys(selector)), func(key string) bool { return has[key] != selector[key] })
}

// TestMonitor: each pod is scraped once, although two services have it, and has the job that the rules and the dashboard ask
// for. With TLS a pod is scraped by its address, which no certificate names.
func TestMonitor(t *testing.T) {
	objects, _, err := render(t, variants["all"])
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../../deploy/prometheus/leaf.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	monitor := strictly[serviceMonitor](t, objects, "ServiceMonitor ids-leaf").Spec
	var scraped []string
	for _, name := range []string{"Service ids-leaf", "Service ids-leaf-nodes"} {
		service := strictly[corev1.Service](t, objects, name)
		if !selects(monitor.Selector.MatchLabels, service.Labels) {
			continue
		}
		scraped = append(scraped, name)
		// As the operator of Prometheus does: the value of the label, or else the name of the service.
		job := cmp.Or(service.Labels[monitor.JobLabel], service.Name)
		if !strings.Contains(string(rules), fmt.Sprintf("up{job=%q}", job)) {
			t.Errorf("the nodes have the job %q, and no rule asks whether these are up", job)
		}
	}
	if end := monitor.Endpoints[0]; end.Scheme != "https" || !end.TLS.InsecureSkipVerify {
		t.Errorf("a pod with TLS is scraped as %+v", end)
	}
	if len(scraped) != 1 {
		t.Errorf("the monitor takes the pods of %q", scraped)
	}
}

// TestConfigurations: a node accepts the configuration of every variant.
func TestConfigurations(t *testing.T) {
	program := build(t)
	for name, v := range variants {
		objects, _, err := render(t, v)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		text := strings.ReplaceAll(strictly[corev1.ConfigMap](t, objects, "ConfigMap ids-leaf").Data["leaf.yaml"], "/etc/leaf", dir)
		for file, content := range map[string]string{"leaf.yaml": text, "store/url": "mysql://leaf@db:3306/leaf\n", "auth/token": "t0ken\n"} {
			write(t, filepath.Join(dir, file), content)
		}
		cmd := exec.CommandContext(t.Context(), program, "config", "check", "--config", filepath.Join(dir, "leaf.yaml"))
		cmd.Env = []string{"LEAF_NODE_ADVERTISE=10.1.2.3"}
		if v["kind"] != "StatefulSet" && v["segment"] == nil {
			cmd.Env = append(cmd.Env, "LEAF_SNOWFLAKE_ADDRESS=10.1.2.3")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, text)
		}
		if objects["Job ids-leaf-prepare"] == "" {
			continue
		}
		job := strictly[batchv1.Job](t, objects, "Job ids-leaf-prepare").Spec.Template.Spec
		for _, c := range slices.Concat(job.InitContainers, job.Containers) {
			if out, err := exec.CommandContext(t.Context(), program, append(slices.Clone(c.Args), "--help")...).CombinedOutput(); err != nil {
				t.Errorf("%s: leaf %q: %v\n%s", name, c.Args, err, out)
			}
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// build returns the program leaf.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "leaf")
	c := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", program, "./cmd/leaf")
	c.Dir = "../.."
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestRefusals: the chart refuses what would be ignored, or would be wrong.
func TestRefusals(t *testing.T) {
	for name, v := range map[string]values{
		"unknown key":            {"replica": 3},
		"unknown key below":      {"image": values{"repo": "x"}},
		"unknown kind":           {"kind": "DaemonSet"},
		"etcd without address":   {"snowflake": values{"registry": "etcd"}},
		"no secret":              {"store": values{"existingSecret": ""}},
		"unknown mode":           {"readiness": values{"mode": "both"}},
		"config that is no YAML": {"config": "a: b: c"},
		"one worker ID for all":  {"kind": "StatefulSet", "config": "snowflake: { worker-from-hostname: false, worker-id: 3 }"},
		"static in a Deployment": {"config": "snowflake: { registry: static, worker-from-hostname: true }"},
		"another data directory": {"config": "data-dir: /data/other"},
		"a name for a number":    {"config": "snowflake: { name: 1.10 }"},
	} {
		if _, _, err := render(t, v); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
