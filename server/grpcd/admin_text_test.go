package grpcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/server/admin"
)

// oddNode knows texts that are not UTF-8.
type oddNode struct{ admin.NodeBackend }

func (oddNode) Info(context.Context) (admin.Info, error) {
	return admin.Info{DataDir: "/d\xff", Stores: []string{"s", "s\xff"}}, nil
}

func (oddNode) Tags(context.Context) ([]admin.Tag, error) {
	return []admin.Tag{{Name: "a"}, {Name: "b\xff\xfe", Description: "größe"}}, nil
}

func (oddNode) Tag(context.Context, string) (admin.Tag, error) {
	return admin.Tag{Name: "a", Description: "gr\xf6\xdfe"}, nil
}

// TestAdminMendsTexts: one of them does not hide everything else.
func TestAdminMendsTexts(t *testing.T) {
	c := leafpb.NewAdminServiceClient(startAdmin(t, oddNode{}))
	ctx := within(t, 20*time.Second)
	info, err := c.GetInfo(ctx, &leafpb.GetInfoRequest{})
	if diff := cmp.Diff(&leafpb.GetInfoResponse{DataDir: "/d\uFFFD", Stores: []string{"s", "s\uFFFD"}}, info, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("GetInfo: %v (-want +got):\n%s", err, diff)
	}
	tags, err := c.ListTags(ctx, &leafpb.ListTagsRequest{})
	want := &leafpb.ListTagsResponse{Tags: []*leafpb.Tag{{Tag: "a"}, {Tag: "b\uFFFD", Description: "größe"}}}
	if diff := cmp.Diff(want, tags, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("ListTags: %v (-want +got):\n%s", err, diff)
	}
	tag, err := c.GetTag(ctx, &leafpb.GetTagRequest{Tag: "a"})
	if diff := cmp.Diff(&leafpb.GetTagResponse{Tag: &leafpb.Tag{Tag: "a", Description: "gr\uFFFDe"}}, tag, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("GetTag: %v (-want +got):\n%s", err, diff)
	}
}
