package devstack

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner is the user that a service runs as. A nil owner is ourselves.
type owner struct {
	uid, gid uint32
}

// unprivileged picks the first of the named users that exists, when we are root:
// postgres refuses to run as root, and no other service needs to. When we are not
// root the owner is nil.
func unprivileged(names ...string) (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := parseID(found.Uid)
		if err != nil {
			return nil, fmt.Errorf("read the user id of %s: %w", name, err)
		}
		gid, err := parseID(found.Gid)
		if err != nil {
			return nil, fmt.Errorf("read the group id of %s: %w", name, err)
		}
		return &owner{uid: uid, gid: gid}, nil
	}
	return nil, fmt.Errorf("find an unprivileged user to run services as: none of %q exists; run as a user other than root", names)
}

// parseID reads a user or group id. macOS writes that of nobody as -2.
func parseID(text string) (uint32, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	return uint32(id), err
}

func (o *owner) chown(path string) error {
	if o == nil {
		return nil
	}
	if err := os.Chown(path, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("give %s to the user of the service: %w", path, err)
	}
	return nil
}

// reaches reports as an error a directory that the owner cannot enter.
func (o *owner) reaches(dir string) error {
	if o == nil {
		return nil
	}
	for _, above := range ancestors(dir) {
		info, err := os.Stat(above)
		if err != nil {
			return err
		}
		if !executableBy(info, o) {
			return fmt.Errorf("%s: user %d, who runs the service because we are root, may not enter it", above, o.uid)
		}
	}
	return nil
}

// attributes are those of a child: its own process group, so that Ctrl-C at the
// terminal does not end it before our orderly stop, and the owner's rights.
func (o *owner) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if o != nil {
		attributes.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
	return attributes
}

func ownerOf(info fs.FileInfo) (uid, gid uint32) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Uid, stat.Gid
	}
	return 0, 0
}
