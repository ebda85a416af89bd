package helm_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// release has objects, as KIND/NAMESPACE/NAME, and the configuration of its nodes.
type release struct {
	runs   []string
	config string
}

func (c release) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return resource{release: c, kind: kind}, true, nil
}

// resource is one kind of objects.
type resource struct {
	dynamic.NamespaceableResourceInterface

	release release
	kind    string
}

func (r resource) Namespace(namespace string) dynamic.ResourceInterface {
	r.kind += "/" + namespace
	return r
}

func (r resource) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	switch {
	case slices.Contains(r.release.runs, r.kind+"/"+name):
		return &unstructured.Unstructured{Object: map[string]any{"kind": r.kind}}, nil
	case r.kind+"/"+name == "ConfigMap/shop/ids-leaf" && r.release.config != "":
		return &unstructured.Unstructured{Object: map[string]any{"kind": r.kind, "data": map[string]any{"leaf.yaml": r.release.config}}}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// TestNotesWithoutPrepare: the values say to switch the Job off for a registry that was wiped, or takes the place of another one.
// The notes do not make up for it with leaf worker init.
func TestNotesWithoutPrepare(t *testing.T) {
	_, notes, err := render(t, values{"prepare": values{"enabled": false}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes, "Run leaf worker init only for a\nregistry in which no node has ever taken a worker ID") || strings.Contains(notes, "leaf worker init yourself") {
		t.Errorf("the notes say:\n%s", notes)
	}
}

// TestKindOfARunningRelease: nodes of the other kind have the same worker IDs, and an upgrade starts them
// before the old ones end. To end those first is not enough: a registry or a volume from an earlier time does
// not wait until all clocks have passed what they issued.
func TestKindOfARunningRelease(t *testing.T) {
	upgrade := func(kind string, runs ...string) error {
		return upgrade(t, values{"kind": kind}, release{runs: runs})
	}
	for kind, other := range map[string]string{"Deployment": "StatefulSet", "StatefulSet": "Deployment"} {
		if err := upgrade(kind, other+"/shop/ids-leaf"); err == nil || !strings.Contains(err.Error(), "helm uninstall, wait until no pod is left, and then for the longest horizon (10 minutes), longer after a clock was ahead (docs/SNOWFLAKE.md#operating), and install again with prepare.enabled=false") {
			t.Errorf("%s beside %s: %v", kind, other, err)
		}
		if err := errors.Join(upgrade(kind), upgrade(kind, kind+"/shop/ids-leaf", other+"/other/ids-leaf", other+"/shop/shop")); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// upgrade returns the error of helm upgrade to some values.
func upgrade(t *testing.T, to values, from release) error {
	t.Helper()
	c := load(t)
	v, err := chartutil.ToRenderValues(c, to, chartutil.ReleaseOptions{Name: "ids", Namespace: "shop", IsUpgrade: true}, nil)
	if err == nil {
		_, err = engine.RenderWithClientProvider(c, v, from)
	}
	return err
}

// TestRegistryOfARunningRelease: an upgrade to another registry of worker IDs starts nodes that take the numbers of those which
// still run. The configuration that a release has is that of the chart itself.
func TestRegistryOfARunningRelease(t *testing.T) {
	const sql, etcd = "sql", "etcd:2379"
	to := func(address string, more values) values {
		v := values{"registry": "sql"}
		if address != sql {
			v = values{"registry": "etcd", "registryAddress": address}
		}
		maps.Copy(v, more)
		return values{"snowflake": v}
	}
	runs := func(v values) release {
		objects, _, err := render(t, v)
		if err != nil {
			t.Fatal(err)
		}
		var c corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(objects["ConfigMap ids-leaf"]), &c); err != nil {
			t.Fatal(err)
		}
		return release{runs: []string{"Deployment/shop/ids-leaf"}, config: c.Data["leaf.yaml"]}
	}
	for name, tt := range map[string]struct {
		from, to values
		refused  string
	}{
		"the same":             {to(sql, nil), to(sql, nil), ""},
		"another kind":         {to(sql, nil), to(etcd, nil), "snowflake.registry"},
		"back":                 {to(etcd, nil), to(sql, nil), "snowflake.registry"},
		"another address":      {to(etcd, nil), to("other:2379", nil), "snowflake.registry-address"},
		"another name":         {to(etcd, nil), values{"snowflake": to(etcd, nil)["snowflake"], "config": "snowflake: { name: other }"}, "snowflake.name"},
		"snowflake mode off":   {to(etcd, nil), to(sql, values{"enabled": false}), ""},
		"snowflake mode on":    {to(etcd, values{"enabled": false}), to(sql, nil), ""},
		"other values of both": {to(etcd, nil), values{"snowflake": to(etcd, nil)["snowflake"], "config": "snowflake: { horizon: 5m }"}, ""},
	} {
		err := upgrade(t, tt.to, runs(tt.from))
		if tt.refused == "" && err != nil || tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused+": ")) {
			t.Errorf("%s: %v; want %q", name, err, tt.refused)
		}
		if err != nil && !strings.Contains(err.Error(), "kubectl -n shop delete configmap ids-leaf,") {
			t.Errorf("%s: %v names no namespace: another release can have this name elsewhere", name, err)
		}
	}
}
