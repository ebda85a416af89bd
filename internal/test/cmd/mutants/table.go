package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// markdown writes the report.
func markdown(all []verdict, took time.Duration) string {
	var b strings.Builder
	tried, found := hunted(all)
	fmt.Fprintf(&b, `# Mutants

Written by `+"`make mutants`"+`: each of %d defects was put into the code, one at a time, and the named test failed, or the simulation did, or both; %.0f minutes in
all. How it works: internal/test/mutants/README.md. The simulation was tried on the %d defects that lie in what it drives, and caught %d of them; "-" means that it was not tried,
because the defect lies in a driver for a real server, in the server program, or between two instructions, which no simulated schedule separates.

## Every guarantee, rule and known defect of a peer

Numbers and letters are those of docs/RULES.md. A peer's defect is named by the thread that reports it; its mutant does in our code what that peer does.

| class | what it says | mutants |
| --- | --- | --- |
`, len(all), took.Minutes(), tried, found)
	for _, c := range classes {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, c.text, strings.Join(standFor(all, c), ", "))
	}
	b.WriteString("\n## Every mutant\n\nThe time is that of the test, or of all seeds up to the failing one on one core, without compiling.\n\n")
	b.WriteString("| mutant | breaks | class | test | seed of the simulation |\n| --- | --- | --- | --- | --- |\n")
	for _, v := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", v.name, v.breaks, strings.Join(v.classes, ", "), v.test.cell(), v.sim.cell())
	}
	return b.String()
}

// standFor returns the names of the mutants of a class that were caught.
func standFor(all []verdict, c class) []string {
	var names []string
	for _, v := range all {
		if v.caught() && slices.Contains(v.classes, c.name) {
			names = append(names, v.name)
		}
	}
	return names
}

func (o outcome) cell() string {
	switch {
	case !o.tried:
		return "-"
	case o.caught == "":
		return fmt.Sprintf("not within %.0f s", o.took.Seconds())
	}
	return fmt.Sprintf("%s, %.1f s", o.caught, o.took.Seconds())
}
