package limit

import (
	"context"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
)

// granted returns issuers behind the roles of a named token or a certificate. Roles are asked
// for each request, because a server keeps the issuers of a connection: a revoked
// token is refused at once.
func granted(g *auth.Grant, inner *leaf.Issuers) *leaf.Issuers {
	return &leaf.Issuers{Segment: &segmentOf{g, inner.Segment}, Snowflake: &snowflakeOf{g, inner.Snowflake}, Sequence: &sequencesOf{g, inner.Sequence}}
}

type segmentOf struct {
	grant *auth.Grant
	inner leaf.Issuer
}

// Next implements leaf.Issuer.
func (s *segmentOf) Next(ctx context.Context, tag string) (int64, error) {
	if err := s.grant.Issue(tag); err != nil {
		return 0, err
	}
	return s.inner.Next(ctx, tag)
}

// NextN implements leaf.Issuer.
func (s *segmentOf) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if err := s.grant.Issue(tag); err != nil {
		return nil, err
	}
	return s.inner.NextN(ctx, tag, n)
}

type snowflakeOf struct {
	grant *auth.Grant
	inner leaf.Issuer
}

// Next implements leaf.Issuer.
func (s *snowflakeOf) Next(ctx context.Context, key string) (int64, error) {
	if err := s.grant.IssueSnowflake(); err != nil {
		return 0, err
	}
	return s.inner.Next(ctx, key)
}

// NextN implements leaf.Issuer.
func (s *snowflakeOf) NextN(ctx context.Context, key string, n int) ([]leaf.Range, error) {
	if err := s.grant.IssueSnowflake(); err != nil {
		return nil, err
	}
	return s.inner.NextN(ctx, key, n)
}
