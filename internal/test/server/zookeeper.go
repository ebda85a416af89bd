package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type zooKeeper struct{}

func (zooKeeper) name() string     { return "zookeeper" }
func (zooKeeper) variable() string { return "LEAF_TEST_ZOOKEEPER" }

// ports are those of clients, of peers and of elections.
func (zooKeeper) ports() int { return 3 }

// zooKeeperJars are what a server needs. Debian's manifest of the last one names the
// others in the system's folder, so they come before it where they lie elsewhere.
var zooKeeperJars = []string{
	"slf4j-simple", // in no manifest: without it nothing is logged
	"zookeeper-jute", "commons-cli", "commons-io", "jackson-annotations", "jackson-core", "jackson-databind", "metrics-core",
	"netty-buffer", "netty-common", "netty-handler", "netty-transport", "netty-transport-native-epoll", "netty-codec", "netty-resolver",
	"slf4j-api", "snappy-java", "zookeeper",
}

func (zooKeeper) install(n int, members []member) error {
	if _, err := zooKeeperFolder(); err != nil {
		return err
	}
	m := members[n]
	host, port, err := net.SplitHostPort(m.addrs[0])
	if err != nil {
		return err
	}
	data := filepath.Join(m.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	// The short tick serves short sessions, and elections of less than a second.
	// Many test processes come from one address, so their number is not limited.
	lines := []string{
		"tickTime=200",
		"initLimit=25",
		"syncLimit=10",
		"minSessionTimeout=400",
		"maxSessionTimeout=60000",
		"maxClientCnxns=0",
		"preAllocSize=1024",
		"dataDir=" + data,
		"clientPortAddress=" + host,
		"clientPort=" + port,
	}
	if len(members) > 1 { // a lone node with such a line would wait for its peers
		for i, other := range members {
			_, election, err := net.SplitHostPort(other.addrs[2])
			if err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("server.%d=%s:%s", i+1, other.addrs[1], election))
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(m.dir, "zoo.cfg"), []byte(strings.Join(lines, "\n")+"\n"), 0o600),
		os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(n+1)), 0o600),
	)
}

func (zooKeeper) command(ctx context.Context, n int, members []member) (*exec.Cmd, error) {
	folder, err := zooKeeperFolder()
	if err != nil {
		return nil, err
	}
	var jars []string
	for _, name := range zooKeeperJars {
		jars = append(jars, filepath.Join(folder, name+".jar"))
	}
	java, err := find("java", "default-jre-headless")
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, java,
		"-Xms32m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:-UsePerfData", // its file in /tmp would survive a kill
		"-Djava.io.tmpdir="+members[n].dir,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dzookeeper.4lw.commands.whitelist=*", "-Dzookeeper.admin.enableServer=false",
		"-cp", strings.Join(jars, ":"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(members[n].dir, "zoo.cfg"),
	), nil
}

// zooKeeperFolder returns the folder of the jars: that of the first zookeeper.jar in a
// folder of PATH, which is where test/newest has it, else the system's.
func zooKeeperFolder() (string, error) {
	const jar = "zookeeper.jar"
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/share/java") {
		if path, err := filepath.EvalSymlinks(filepath.Join(folder, jar)); err == nil {
			return filepath.Dir(path), nil
		}
	}
	return "", fmt.Errorf("%s: %w: install the Debian package libzookeeper-java", jar, ErrMissing)
}

// leads asks with "srvr", the one word that servers answer by default. Its
// answer has a line "Mode:" once the node is part of a majority.
func (z zooKeeper) leads(ctx context.Context, addr string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := z.word(ctx, addr, "srvr")
	if err != nil {
		return false, err
	}
	mode, ok := field(answer, "Mode: ")
	if !ok {
		return false, fmt.Errorf("%s does not serve: %s", addr, strings.TrimSpace(answer))
	}
	return mode == "leader" || mode == "standalone", nil
}

func (z zooKeeper) version(ctx context.Context, addr string) (string, error) {
	answer, err := z.word(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	version, ok := field(answer, "Zookeeper version: ") // 3.8.0-<commit>, built on …
	if !ok {
		return "", fmt.Errorf("%s is no ZooKeeper: it answers srvr with %q", addr, answer)
	}
	version, _, _ = strings.Cut(version, "-")
	return version, nil
}

// word sends a four-letter word and returns the answer.
func (zooKeeper) word(ctx context.Context, addr, word string) (string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := io.WriteString(c, word); err != nil {
		return "", fmt.Errorf("ask %s for %s: %w", addr, word, err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		return "", fmt.Errorf("ask %s for %s: %w", addr, word, err)
	}
	return string(answer), nil
}

// field returns what follows prefix at the beginning of a line.
func field(text, prefix string) (string, bool) {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			return value, true
		}
	}
	return "", false
}

func (zooKeeper) stopSignal() syscall.Signal { return syscall.SIGTERM }

// zooKeeperSession is long, because it only has to outlive a busy moment.
const zooKeeperSession = 20 * time.Second
