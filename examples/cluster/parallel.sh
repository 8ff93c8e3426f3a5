#!/bin/bash
# Packs SOURCE into DESTINATION in PARTS parts with GNU parallel: parallel.sh SOURCE DESTINATION PARTS [OPTION OF parallel]...
# With `-S host1,host2`, on other machines that have SOURCE and DESTINATION under the same paths or URLs.
source=$1 destination=$2 parts=$3
shift 3
# Status 1 means rejected inputs, which the commit lists.
seq 0 $((parts - 1)) |
  parallel --retries 3 "$@" "shardtool pack '$source' '$destination' --jobs 1 --part {}/$parts || [ \$? -eq 1 ]"
shardtool commit "$destination"
