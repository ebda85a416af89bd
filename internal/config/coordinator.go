package config

import (
	"strings"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
)

// FenceKey is the key of the cluster fence.
const FenceKey = "segment.cluster-fence"

// Where the cluster fence and the directory of nodes lie in etcd.
const (
	EtcdFence = "/leaf/fence"
	EtcdNodes = "/leaf/node"
)

// CoordinatorForm is what a URL of a Coordinator must be.
const CoordinatorForm = "must be " + zookeeper.URLForm + " or " + etcd.URLForm

// Coordinator is a URL of ZooKeeper or etcd, taken apart: one of the two is there.
type Coordinator struct {
	ZooKeeper *zookeeper.Config
	Etcd      *etcd.Config
}

// ParseCoordinator reads the value of key, for keys that lie under folder in etcd.
func ParseCoordinator(key, text, folder string) (c Coordinator, err error) {
	if strings.HasPrefix(text, "zookeeper:") {
		var cfg zookeeper.Config
		cfg, err = zookeeper.ParseURL(text)
		c.ZooKeeper = &cfg
	} else {
		var cfg etcd.Config
		cfg, err = etcd.ParseURL(text, folder)
		c.Etcd = &cfg
	}
	if err != nil { // it does not know the key, and shows no value
		return Coordinator{}, &Error{Key: key, Value: Redact(text), Limit: CoordinatorForm}
	}
	return c, nil
}
