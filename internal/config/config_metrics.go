package config

// Metrics is the section metrics.
type Metrics struct {
	Tags int64 `key:"tags" default:"50" min:"0" max:"1000" help:"How many tags /metrics names, the busiest ones. All others are one more, _other. Each costs 7 series of samples."`
}
