// Package helm renders the chart in deploy/helm with Helm's own packages, for its tests.
package helm
