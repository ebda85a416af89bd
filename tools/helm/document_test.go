package helm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestKubernetesDocument: the block of docs/OPERATIONS.md for Kubernetes makes the secret that the
// chart asks for, and installs a chart that is there. kubectl itself makes the secret where it is
// installed; without it this test reads the arguments as kubectl does.
func TestKubernetesDocument(t *testing.T) {
	commands := documented(t)
	if len(commands) != 2 || !slices.Equal(commands[0][:4], []string{"kubectl", "create", "secret", "generic"}) || !slices.Equal(commands[1][:2], []string{"helm", "install"}) {
		t.Fatalf("this test does not know the commands %q", commands)
	}
	made := secret(t, commands[0])
	release, path := commands[1][2], filepath.Join("../..", commands[1][3])
	if _, err := loader.LoadDir(path); err != nil || len(commands[1]) != 4 {
		t.Fatalf("helm install %s %s: %v", release, path, err)
	}
	objects, _, err := render(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for object, pod := range map[string]corev1.PodSpec{
		"Deployment": strictly[appsv1.Deployment](t, objects, "Deployment ids-leaf").Spec.Template.Spec,
		"Job":        strictly[batchv1.Job](t, objects, "Job ids-leaf-prepare").Spec.Template.Spec,
	} {
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == made.Name })
		if at < 0 {
			t.Errorf("%s: no volume has the secret %s", object, made.Name)
			continue
		}
		for _, item := range pod.Volumes[at].Secret.Items {
			if url := made.StringData[item.Key] + string(made.Data[item.Key]); !strings.HasPrefix(url, "mysql://") {
				t.Errorf("%s: the key %s of the secret is %q", object, item.Key, url)
			}
		}
	}
}

// documented returns the commands of the fenced block with helm.
func documented(t *testing.T) (commands [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "\n```") {
		if i%2 == 0 || !strings.Contains(block, "helm install") {
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "sh\n")) {
			commands = append(commands, strings.Fields(line))
		}
	}
	return commands
}

// secret returns what a command makes.
func secret(t *testing.T, command []string) (made corev1.Secret) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err == nil {
		out, err := exec.CommandContext(t.Context(), command[0], append(slices.Clone(command[1:]), "--dry-run=client", "--output=yaml")...).Output()
		if err != nil {
			t.Fatalf("%q: %v", command, err)
		}
		if err := yaml.UnmarshalStrict(out, &made); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return made
	}
	key, value, ok := strings.Cut(strings.TrimPrefix(command[5], "--from-literal="), "=")
	if !ok || len(command) != 6 {
		t.Fatalf("%q", command)
	}
	made.Name, made.StringData = command[4], map[string]string{key: value}
	return made
}
