#!/bin/bash
#SBATCH --job-name=pack --array=0-63 --cpus-per-task=8 --requeue
# Packs SOURCE into DESTINATION, a folder that all nodes share or the URL of a store:
#   job=$(sbatch --parsable slurm.sh SOURCE DESTINATION)
#   sbatch --dependency=afterany:$job --wrap "shardtool commit DESTINATION"
srun shardtool pack "$1" "$2" --jobs "${SLURM_CPUS_PER_TASK:-1}" --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
# Status 1 means rejected inputs, which the commit lists.
[ $? -le 1 ]
