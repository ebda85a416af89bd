// Package rules has no code of its own. Its tests cause the condition of each alert of
// deploy/prometheus on real nodes, and evaluate the rules with the engine of Prometheus. They are
// a module of their own, so that Prometheus is no dependency of Leaf.
package rules
