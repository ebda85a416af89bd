package console_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPolicy is promise 4: on each reply, also of what is not there.
func TestPolicy(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "s3cret", nil)
	_, _, page := s.ask(http.MethodGet, "", "")
	asset := regexp.MustCompile(`a/[0-9a-f]{16}/app\.js`).FindString(page)
	for path, want := range map[string]int{"": 200, asset: 200, "a/0000000000000000/app.js": 404, strings.Replace(asset, "app.js", "index.tmpl", 1): 404, "a/../../etc/passwd": 404, "api/overview": 401, "api/session": 200} {
		status, header, _ := s.ask(http.MethodGet, path, "")
		if status != want {
			t.Errorf("%q: %d, want %d", path, status, want)
		}
		policy := header.Get("Content-Security-Policy")
		if policy != "default-src 'none'; connect-src 'self'; img-src 'self' data:; script-src 'self'; style-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'self'" || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: policy %q, %v", path, policy, header)
		}
		immutable := strings.Contains(header.Get("Cache-Control"), "immutable")
		if immutable != (path == asset) {
			t.Errorf("%q: Cache-Control %q", path, header.Get("Cache-Control"))
		}
	}
	if regexp.MustCompile(`(?i)<script[^>]*>[^<]|style=|\son\w+=|https?:`).MatchString(page) {
		t.Errorf("the page has a script, a style or an address of its own:\n%s", page)
	}
}

// TestAssets: no file makes markup of data, or gets anything from elsewhere, and each text
// that a page names exists.
func TestAssets(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("assets/*")
	if err != nil || len(files) < 15 {
		t.Fatal(files, err)
	}
	texts := languages(t)
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\('|https?://|//cdn|DOMParser|createContextualFragment|srcdoc`)
	used := regexp.MustCompile(`\bt\('([^']+)'[,)]`)
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "")
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		for _, match := range used.FindAllStringSubmatch(text, -1) {
			if _, ok := texts["en"][match[1]]; !ok {
				t.Errorf("%s names the text %q, which does not exist", name, match[1])
			}
		}
	}
}

// TestLanguages: all have the same texts, with the same places for values.
func TestLanguages(t *testing.T) {
	t.Parallel()
	all := languages(t)
	place := regexp.MustCompile(`\{\w+\}`)
	for name, texts := range all {
		for key, english := range all["en"] {
			text, ok := texts[key]
			if !ok || text == "" {
				t.Errorf("%s lacks %q", name, key)
			}
			want, got := place.FindAllString(english, -1), place.FindAllString(text, -1)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				t.Errorf("%s: %q has the places %v, and in English %v", name, key, got, want)
			}
		}
		for key := range texts {
			if _, ok := all["en"][key]; !ok {
				t.Errorf("%s has %q, which English lacks", name, key)
			}
		}
	}
}

func languages(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, name := range []string{"en", "zh"} {
		content, err := os.ReadFile("assets/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		if err := json.Unmarshal(content, &texts); err != nil {
			t.Fatal(err)
		}
		all[name] = texts
	}
	return all
}
