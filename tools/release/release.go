package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// release is what .goreleaser.yaml says of one commit.
type release struct {
	root    string
	project config.Project
	fields  map[string]string // that a template may name
	time    time.Time         // of the commit
	stored  bool              // not compressed, for tests, which only install the package
}

// open reads .goreleaser.yaml in root, a git checkout.
func open(ctx context.Context, root, tag string) (*release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	project, err := config.Load(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		return nil, err
	}
	if len(project.Builds) != 1 || len(project.NFPMs) != 1 {
		return nil, errors.New(".goreleaser.yaml: this program knows one build and one package")
	}
	show := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%H %ct")
	shown, err := show.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", show, err)
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(string(shown)), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", show, err)
	}
	at := time.Unix(unix, 0).UTC()
	return &release{root: root, project: project, time: at, fields: map[string]string{
		"Tag": tag, "Version": strings.TrimPrefix(tag, "v"), "FullCommit": commit,
		"CommitTimestamp": seconds, "CommitDate": at.Format(time.RFC3339),
		"Os": runtime.GOOS, "Arch": runtime.GOARCH, "ProjectName": project.ProjectName,
	}}, nil
}

// expand fills a template in.
func (r *release) expand(text string) (string, error) {
	t, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, r.fields)
	return b.String(), err
}

// program builds the program into the folder out.
func (r *release) program(ctx context.Context, out string) (path string, err error) {
	if out, err = filepath.Abs(out); err != nil {
		return "", err
	}
	b := r.project.Builds[0]
	path = filepath.Join(out, b.Binary)
	args := append([]string{"build", "-o", path}, b.Flags...)
	for _, flags := range b.Ldflags {
		text, err := r.expand(flags)
		if err != nil {
			return "", err
		}
		args = append(args, "-ldflags="+text)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, b.Main)...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), b.Env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return path, nil
}

// debian builds the Debian package with program into the folder out.
func (r *release) debian(out, program string) (path string, err error) {
	p := r.project.NFPMs[0]
	name, err := r.expand(p.FileNameTemplate)
	if err != nil {
		return "", err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: p.PackageName, Arch: runtime.GOARCH, Platform: "linux", Version: r.fields["Version"],
		Section: p.Section, Priority: p.Priority, Maintainer: p.Maintainer, Description: p.Description,
		Vendor: p.Vendor, Homepage: p.Homepage, License: p.License, MTime: r.time,
		Overridables: nfpm.Overridables{
			Scripts: nfpm.Scripts{
				PostInstall: r.path(p.Scripts.PostInstall), PreRemove: r.path(p.Scripts.PreRemove), PostRemove: r.path(p.Scripts.PostRemove),
			},
			Deb: nfpm.Deb{Fields: p.Deb.Fields},
		},
	})
	info.Contents = append(info.Contents, &files.Content{
		Source: program, Destination: p.Bindir + "/" + r.project.Builds[0].Binary,
		FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: r.time},
	})
	for _, c := range p.Contents {
		info.Contents = append(info.Contents, &files.Content{
			Source: r.path(c.Source), Destination: c.Destination, Type: c.Type,
			FileInfo: &files.ContentFileInfo{Mode: c.FileInfo.Mode, MTime: r.time},
		})
	}
	if r.stored {
		info.Deb.Compression = "none"
	}
	path = filepath.Join(out, name+".deb")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(deb.Default.Package(info, f), f.Close())
}

func (r *release) path(name string) string { return filepath.Join(r.root, name) }
