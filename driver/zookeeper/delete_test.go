package zookeeper_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/zookeeper"
)

// words are those into which zkCli.sh takes a line apart, by the patterns of its class ZooKeeperMain.
func words(line string) (all []string) {
	for _, found := range regexp.MustCompile(`\s*([^"']\S*|"[^"]*"|'[^']*')\s*`).FindAllStringSubmatch(line, -1) {
		word := found[1]
		if n := len(word) - 1; n > 0 && word[0] == word[n] && strings.ContainsAny(word[:1], `'"`) {
			word = word[1:n]
		}
		all = append(all, word)
	}
	return all
}

// TestDeleteIsTyped: zkCli.sh deletes one path, whatever the name of the registry is. It overlooks a second word,
// so the path that ends before a space would be that of another registry.
func TestDeleteIsTyped(t *testing.T) {
	t.Parallel()
	if r, err := zookeeper.NewRecycle(zookeeper.Config{Servers: []string{"127.0.0.1:1"}, Name: `"a" and 'b'`}); err != nil || !strings.Contains(r.Info().Reset, "not with zkCli.sh") {
		t.Errorf("a path that zkCli.sh cannot take: %v", err)
	}
	for _, name := range []string{"prod", "my env", "it's", "it's mine", `"a" b`, "a  b", " a", "'a'", "订单"} {
		cfg := zookeeper.Config{Servers: []string{"127.0.0.1:1"}, Name: name}
		o, err := zookeeper.NewOriginal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, err := zookeeper.NewRecycle(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for reset, path := range map[string]string{
			o.Info().Reset: "/snowflake/" + name + "/leaf_namespace",
			r.Info().Reset: "/snowflake/" + name + "/leaf_pool/namespace",
		} {
			line, ok := strings.CutPrefix(reset, "in zkCli.sh, ")
			if got := words(line); !ok || !slices.Equal(got, []string{"deleteall", path}) {
				t.Errorf("zkCli.sh takes %q for %q; want the path %q", reset, got, path)
			}
		}
	}
}
