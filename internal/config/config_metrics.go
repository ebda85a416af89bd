package config

// Metrics is the section metrics.
type Metrics struct {
	Tags int64 `key:"tags" default:"50" min:"0" max:"1000" help:"How many tags /metrics names, the busiest ones. All others are one more, _other. Each costs 7 series of samples."`
}

// Trace is the section trace.
type Trace struct {
	URL string `key:"url" hint:"URL" secret:"path" help:"Where spans of loads, claims and administrative changes are sent: a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces. Without it there are none."`
}
