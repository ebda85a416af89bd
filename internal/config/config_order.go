package config

import "time"

// Order is the section order: which node issues a tag in strict order, and how the others reach it.
type Order struct {
	Slots      int64         `key:"slots" default:"64" min:"1" max:"1024" help:"Into how many slots tags in strict order are divided. Each slot has one node that issues its tags. All nodes need the same number."`
	Lease      time.Duration `key:"lease" default:"2s" min:"500ms" max:"1m" help:"How long a node issues its tags in strict order after it last reached the database. After a crash the tags wait as long and a tenth longer for another node. Each node that has such tags writes to the database four times in a lease."`
	MaxWait    time.Duration `key:"max-wait" default:"5s" min:"10ms" max:"1m" help:"Longest time a request waits for the node that issues its tag, such as after a crash. Then it gets an error that says retry."`
	CA         string        `key:"ca" hint:"FILE" help:"With tls.cert: certificates (PEM) of the authorities that have signed the certificates of the other nodes, to which this node takes requests for their tags. The file is read again when it changes. Default: those that the system trusts."`
	ServerName string        `key:"server-name" hint:"HOST" help:"With tls.cert: the name that the certificate of each node must be for, where all have one of that name. Default: what each node has as node.advertise."`
}
