package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The run is an operator who knows no more than the texts of the program: what a text
// says to type is typed literally, with the name of the tag for TAG.
var (
	// regress is the line of an alarm for a tag that latched, with what it says to do.
	regress = regexp.MustCompile(`level=ERROR .*code=regress subject=(\S+) do="((?:[^"\\]|\\.)*)"`)
	// typed is a command in a text: plain words, then words in capitals to be replaced.
	typed = regexp.MustCompile(`\bleaf(?: [a-z]+)+(?: [A-Z]+)*`)
)

// logs returns how much each node has logged.
func (c *cluster) logs() []int {
	lengths := make([]int, len(c.nodes))
	for i, n := range c.nodes {
		_, lengths[i] = n.said(0)
	}
	return lengths
}

// told returns a node whose log has the alarm of a latched tag, after since, and the
// command that the alarm names.
func (c *cluster) told(tag string, since []int) (n *node, command string) {
	for i, n := range c.nodes {
		text, _ := n.said(since[i])
		all := regress.FindAllStringSubmatch(text, -1)
		for _, found := range slices.Backward(all) {
			if found[1] == tag {
				return n, typed.FindString(found[2])
			}
		}
	}
	return nil, ""
}

// follow waits for the alarm of each tag and does what it says.
func (c *cluster) follow(ctx context.Context, since []int, tags ...string) error {
	for _, tag := range tags {
		var n *node
		var command string
		err := poll(ctx, c.cfg.Recovery, func(context.Context) error {
			if n, command = c.told(tag, since); command == "" {
				return fmt.Errorf("no alarm says what to type for tag %s", tag)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := c.obey(ctx, n, command, tag); err != nil {
			return err
		}
	}
	return nil
}

// repair repairs tags of which some latched and others are about to: as their alarm says
// at its node, else as the documents say at any one node.
func (c *cluster) repair(ctx context.Context, tags ...string) error {
	everything := make([]int, len(c.nodes))
	for i, tag := range tags {
		n, command := c.told(tag, everything)
		if command == "" {
			n, command = c.nodes[i%len(c.nodes)], "leaf tag repair TAG"
		}
		if err := c.obey(ctx, n, command, tag); err != nil {
			return err
		}
	}
	return nil
}

// obey types a command on the machine of a node, until it is carried out: a node whose
// database has just come back may need a moment.
func (c *cluster) obey(ctx context.Context, n *node, command, tag string, settings ...string) error {
	words := strings.Fields(command)[1:]
	for i, w := range words {
		if w == "TAG" {
			words[i] = tag
		}
	}
	c.followed[command]++
	return poll(ctx, c.cfg.Recovery, func(ctx context.Context) error {
		return c.leafAt(ctx, n.dir, append(words, settings...)...)
	})
}

// restart starts a node that lost a file, as an operator does: if it refuses to start,
// what it says is typed with its settings, and each tag is repaired as its alarm says.
func (c *cluster) restart(ctx context.Context, n *node, refuses bool) error {
	since := c.logs()
	err := n.startAgain(ctx)
	switch refused := errors.Is(err, errEnded); {
	case !refused && refuses && err == nil:
		c.broken = append(c.broken, "node "+n.name+" started although it no longer knows which ranges it took")
		return nil
	case !refused || !refuses:
		return err
	}
	said, _ := n.said(since[slices.Index(c.nodes, n)])
	_, remedy, _ := strings.Cut(said, "run: ")
	command := typed.FindString(remedy)
	if command == "" {
		return fmt.Errorf("node %s refuses to start, and does not say what to type: %s", n.name, said)
	}
	if err := c.obey(ctx, n, command, "", n.args[1:]...); err != nil {
		return err
	}
	since = c.logs()
	err = n.startAgain(ctx)
	if errors.Is(err, errEnded) && c.removesOwnNumber(n, since) {
		err = n.startAgain(ctx)
	}
	if err != nil {
		return err
	}
	return c.follow(ctx, since, c.names()...)
}

// removesOwnNumber removes the file of a configured worker ID, if the node says so: its
// number is used by no other process, and its clock was never ahead.
func (c *cluster) removesOwnNumber(n *node, since []int) bool {
	said, _ := n.said(since[slices.Index(c.nodes, n)])
	if !strings.Contains(said, "own file worker.json") || !strings.Contains(said, "remove the file; the next start then waits") {
		return false
	}
	c.followed["rm worker.json"]++
	return os.Remove(filepath.Join(n.dir, "worker.json")) == nil
}

// judgeTexts shows which texts were followed, and what faults complained of.
func (r *run) judgeTexts() {
	c := r.cluster
	for _, text := range c.broken {
		r.report.check(false, "%s", text)
	}
	var all []string
	for _, command := range slices.Sorted(maps.Keys(c.followed)) {
		all = append(all, fmt.Sprintf("%s (%d times)", command, c.followed[command]))
	}
	if len(all) > 0 {
		r.report.check(true, "what the texts say was typed literally: %s", strings.Join(all, ", "))
	}
}

// stopWithin is how soon a node issues nothing more after it lost a file: it looks four
// times a second.
const stopWithin = time.Second
