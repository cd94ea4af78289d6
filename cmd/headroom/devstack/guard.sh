# Stops services and removes their directory once the process that started them is gone.
#
# $1: the directory.
# Standard input: "watch SIGNAL PID" and "forget PID", a line each. Its end is the end of that process.
trap '' HUP INT QUIT TERM

watched=
while read -r verb first second; do
	case $verb in
	watch)
		watched="$watched $first:$second"
		;;
	forget)
		kept=
		for entry in $watched; do
			[ "${entry#*:}" = "$first" ] || kept="$kept $entry"
		done
		watched=$kept
		;;
	esac
done

alive() {
	for entry in $watched; do
		kill -0 "${entry#*:}" 2>/dev/null && return 0
	done
	return 1
}

for entry in $watched; do
	kill -s "${entry%%:*}" "${entry#*:}" 2>/dev/null
done
tenths=0
while alive && [ "$tenths" -lt 50 ]; do
	sleep 0.1
	tenths=$((tenths + 1))
done
for entry in $watched; do
	kill -s KILL "${entry#*:}" 2>/dev/null
done

# A server's last child may still be writing: remove until it stays removed.
rm -rf "$1"
tenths=0
while [ -e "$1" ] && [ "$tenths" -lt 50 ]; do
	sleep 0.1
	rm -rf "$1"
	tenths=$((tenths + 1))
done
