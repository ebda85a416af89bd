package helm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// release has objects, as KIND/NAMESPACE/NAME.
type release []string

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
	if slices.Contains(r.release, r.kind+"/"+name) {
		return &unstructured.Unstructured{Object: map[string]any{"kind": r.kind}}, nil
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
// before the old ones end.
func TestKindOfARunningRelease(t *testing.T) {
	upgrade := func(kind string, runs ...string) error {
		c := load(t)
		v, err := chartutil.ToRenderValues(c, values{"kind": kind}, chartutil.ReleaseOptions{Name: "ids", Namespace: "shop", IsUpgrade: true}, nil)
		if err == nil {
			_, err = engine.RenderWithClientProvider(c, v, release(runs))
		}
		return err
	}
	for kind, other := range map[string]string{"Deployment": "StatefulSet", "StatefulSet": "Deployment"} {
		if err := upgrade(kind, other+"/shop/ids-leaf"); err == nil || !strings.Contains(err.Error(), "helm uninstall, wait until no pod is left, and install again with prepare.enabled=false") {
			t.Errorf("%s beside %s: %v", kind, other, err)
		}
		if err := errors.Join(upgrade(kind), upgrade(kind, kind+"/shop/ids-leaf", other+"/other/ids-leaf", other+"/shop/shop")); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
