package house_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/conf"

	"github.com/headroomhq/headroom/schemas"
)

// compose is what of docker-compose.yml correctness rests on.
type compose struct {
	Services map[string]service `yaml:"services"`
	Configs  map[string]struct {
		Content string `yaml:"content"`
		File    string `yaml:"file"`
	} `yaml:"configs"`
}

type service struct {
	Image       string                       `yaml:"image"`
	Command     []string                     `yaml:"command"`
	Environment map[string]string            `yaml:"environment"`
	Ports       []string                     `yaml:"ports"`
	DependsOn   map[string]map[string]string `yaml:"depends_on"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
	Build struct {
		Dockerfile string `yaml:"dockerfile"`
	} `yaml:"build"`
}

const composeFile = "docker-compose.yml"

func TestComposeHoldsWhatCorrectnessRestsOn(t *testing.T) {
	t.Parallel()
	faults, err := composeFaults(tree(t))
	report(t, faults, err)
}

// composeFaults lists what in docker-compose.yml breaks a promise of README.
func composeFaults(fsys fs.FS) ([]string, error) {
	body, err := fs.ReadFile(fsys, composeFile)
	if err != nil {
		return nil, err
	}
	var c compose
	if err := yaml.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("read %s: %w", composeFile, err)
	}
	var faults []string
	for _, check := range []func(fs.FS, compose) ([]string, error){versions, natsSettings, redisSettings, readiness, ports, environment, references} {
		found, err := check(fsys, c)
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	return faults, nil
}

// versions compares each image with the oldest server the program accepts.
func versions(fsys fs.FS, c compose) ([]string, error) {
	redisFloor, err := number(fsys, "cmd/headroom/redis_check.go", "redisFloor")
	if err != nil {
		return nil, err
	}
	postgresFloor, err := number(fsys, "cmd/headroom/postgres.go", "postgresFloor")
	if err != nil {
		return nil, err
	}
	var faults []string
	if major(c.Services["redis"].Image) < redisFloor {
		faults = append(faults, fmt.Sprintf("redis: image is older than %d", redisFloor))
	}
	if major(c.Services["postgres"].Image) < postgresFloor/10000 {
		faults = append(faults, fmt.Sprintf("postgres: image is older than %d", postgresFloor/10000))
	}
	tag, _, _ := strings.Cut(strings.TrimPrefix(c.Services["nats"].Image, "nats:"), "-")
	if err := schemas.CheckServerVersion(tag); err != nil {
		faults = append(faults, "nats: image: "+err.Error())
	}
	return faults, nil
}

// major is the first number of an image's tag, 0 where it has none.
func major(image string) int {
	_, tag, _ := strings.Cut(image, ":")
	digits, _, _ := strings.Cut(tag, ".")
	digits, _, _ = strings.Cut(digits, "-")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// natsSettings reads the server's configuration with the server's own parser.
func natsSettings(_ fs.FS, c compose) ([]string, error) {
	parsed, err := conf.Parse(c.Configs["nats"].Content)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of nats: %w", err)
	}
	jetstream, on := parsed["jetstream"].(map[string]any)
	switch {
	case !on:
		return []string{"nats: JetStream is off"}, nil
	case jetstream["sync_interval"] != "always":
		return []string{"nats: sync_interval is not always, so that a power cut loses what was acknowledged"}, nil
	}
	return nil, nil
}

func redisSettings(_ fs.FS, c compose) ([]string, error) {
	want := [][2]string{{"--appendonly", "yes"}, {"--appendfsync", "everysec"}, {"--maxmemory-policy", "noeviction"}}
	command := c.Services["redis"].Command
	var faults []string
	for _, w := range want {
		at := slices.Index(command, w[0])
		if at < 0 || at+1 == len(command) || command[at+1] != w[1] {
			faults = append(faults, fmt.Sprintf("redis: %s is not %s", w[0], w[1]))
		}
	}
	return faults, nil
}

// readiness wants a health check everywhere, and Headroom to wait for all others.
func readiness(_ fs.FS, c compose) ([]string, error) {
	var faults []string
	for _, name := range []string{"nats", "redis", "postgres", "headroom"} {
		s, there := c.Services[name]
		switch {
		case !there:
			faults = append(faults, name+": is no service")
		case len(s.Healthcheck.Test) < 2:
			faults = append(faults, name+": has no health check")
		case name != "headroom" && c.Services["headroom"].DependsOn[name]["condition"] != "service_healthy":
			faults = append(faults, "headroom: does not wait until "+name+" is healthy")
		case name == "headroom" && !slices.ContainsFunc(s.Healthcheck.Test, func(arg string) bool { return strings.HasSuffix(arg, "/readyz") }):
			faults = append(faults, name+": is called healthy before it is ready")
		}
	}
	return faults, nil
}

func ports(_ fs.FS, c compose) ([]string, error) {
	var faults []string
	for name, s := range c.Services {
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				faults = append(faults, fmt.Sprintf("%s: port %s is open beyond this machine", name, port))
			}
		}
	}
	return faults, nil
}

func environment(fsys fs.FS, c compose) ([]string, error) {
	list, err := settings(fsys)
	if err != nil {
		return nil, err
	}
	var faults []string
	for name := range c.Services["headroom"].Environment {
		known := slices.ContainsFunc(list, func(s setting) bool { return s.Name == name })
		if strings.HasPrefix(name, "HEADROOM_") && !known {
			faults = append(faults, "headroom: "+name+" is no setting of the program")
		}
	}
	return faults, nil
}

// references wants the files that are named to be there.
func references(fsys fs.FS, c compose) ([]string, error) {
	names := []string{c.Services["headroom"].Build.Dockerfile}
	for _, config := range c.Configs {
		if config.File != "" {
			names = append(names, strings.TrimPrefix(config.File, "./"))
		}
	}
	var faults []string
	for _, name := range names {
		if _, err := fs.Stat(fsys, name); err != nil {
			faults = append(faults, fmt.Sprintf("%s names a file that is not there: %v", composeFile, err))
		}
	}
	return faults, nil
}

// TestComposeFaultsAreCaught breaks the real file in one place after another.
func TestComposeFaultsAreCaught(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ old, new, says string }{
		"an old nats":             {"nats:2.14.5-alpine", "nats:2.14.4-alpine", "nats: image: "},
		"an unsupported line":     {"nats:2.14.5-alpine", "nats:2.13.9-alpine", "nats: image: "},
		"nats of no version":      {"nats:2.14.5-alpine", "nats:alpine", "nats: image: "},
		"an old redis":            {"redis:7.4-alpine", "redis:6.2-alpine", "redis: image is older"},
		"an old postgres":         {"postgres:17-alpine", "postgres:14-alpine", "postgres: image is older"},
		"no sync":                 {"sync_interval: always", "sync_interval: 10s", "sync_interval is not always"},
		"no JetStream":            {"jetstream {", "leafnodes {", "JetStream is off"},
		"eviction":                {"- noeviction", "- allkeys-lru", "--maxmemory-policy is not noeviction"},
		"no file in redis":        {"- --appendonly\n", "", "--appendonly is not yes"},
		"no waiting for redis":    {"redis: {condition: service_healthy}", "redis: {condition: service_started}", "does not wait until redis"},
		"no health check":         {"[\"CMD-SHELL\", \"pg_isready -h 127.0.0.1 -U headroom -d headroom\"]", "[]", "postgres: has no health check"},
		"alive but not ready":     {":8080/readyz", ":8080/healthz", "healthy before it is ready"},
		"a port of all the world": {"\"127.0.0.1:4222:4222\"", "\"4222:4222\"", "nats: port 4222:4222 is open"},
		"an unknown setting":      {"HEADROOM_REDIS_URL", "HEADROOM_REDIS_URI", "HEADROOM_REDIS_URI is no setting"},
		"a missing Dockerfile":    {"dockerfile: cmd/headroom/Dockerfile", "dockerfile: Dockerfile", "not there"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, err := composeFaults(brokenTree(t, c.old, c.new))
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(faults, "\n"); !strings.Contains(said, c.says) {
				t.Errorf("found %q, want %q", said, c.says)
			}
		})
	}
}

// brokenTree is what composeFaults reads, with one text of the compose file replaced.
func brokenTree(t *testing.T, old, replacement string) fs.FS {
	t.Helper()
	broken := fstest.MapFS{}
	for _, name := range []string{
		composeFile, settingsFile, "cmd/headroom/redis_check.go", "cmd/headroom/postgres.go",
		"cmd/headroom/Dockerfile", "examples/catalog.yaml",
	} {
		body, err := fs.ReadFile(tree(t), name)
		if err != nil {
			t.Fatal(err)
		}
		broken[name] = &fstest.MapFile{Data: body}
	}
	whole := string(broken[composeFile].Data)
	if !strings.Contains(whole, old) {
		t.Fatalf("%s does not hold %q", composeFile, old)
	}
	broken[composeFile] = &fstest.MapFile{Data: []byte(strings.Replace(whole, old, replacement, 1))}
	return broken
}
