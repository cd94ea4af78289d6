# Becomes a service, after telling the guard which process that is.
#
# $1: the signal that ends the service in an orderly way; the rest: its program and arguments.
# Descriptor 3: the guard's input, closed before the service starts.
signal=$1
shift
printf 'watch %s %s\n' "$signal" "$$" >&3 && exec "$@" 3>&-
