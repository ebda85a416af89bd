package trace

import "time"

// The message ExportTraceServiceRequest of OTLP in JSON, as far as it is needed: IDs are hexadecimal
// digits, and 64-bit numbers are strings.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID      string      `json:"traceId"`
		SpanID       string      `json:"spanId"`
		ParentSpanID string      `json:"parentSpanId,omitempty"`
		Name         string      `json:"name"`
		Kind         Kind        `json:"kind"`
		Start        int64       `json:"startTimeUnixNano,string"`
		End          int64       `json:"endTimeUnixNano,string"`
		Attributes   []attribute `json:"attributes,omitempty"`
		Status       status      `json:"status"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value text   `json:"value"`
	}
	text struct {
		String string `json:"stringValue"`
	}
	status struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
)

// failed is STATUS_CODE_ERROR.
const failed = 2

func (t *Tracer) request(batch []*Span) request {
	spans := make([]span, len(batch))
	for i, s := range batch {
		spans[i] = span{
			TraceID: s.trace, SpanID: s.id, ParentSpanID: s.parent, Name: s.name, Kind: s.kind,
			Start: s.begin.UnixNano(), End: s.begin.UnixNano() + int64(max(s.end.Sub(s.begin), time.Duration(0))), Attributes: s.attributes,
		}
		if s.failure != "" {
			spans[i].Status = status{failed, s.failure}
		}
	}
	about := []attribute{{"service.name", text{"leaf"}}, {"service.instance.id", text{t.cfg.Node}}, {"service.version", text{t.cfg.Version}}}
	return request{[]resourceSpans{{resource{about}, []scopeSpans{{scope{"github.com/leaf-idgen/leaf"}, spans}}}}}
}
