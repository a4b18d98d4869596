#!/usr/bin/env bash
# Topic models on four nodes, a process each: sbatch deploy/slurm.sh CORPUS MODEL
# A training command finds its place in Slurm's variables. Its ports follow from the numbers of job and step; where only some are open,
# MEGAGRID_PORT_BASE is the first on each node. It goes on from its last checkpoint when the job is started again.
#SBATCH --job-name=megagrid
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=02:00:00
#SBATCH --requeue
set -euo pipefail

corpus=${1:?the corpus to train on}
model=${2:?where the model is to be written}
# With a slash at its end, what stands beside the model would be in it.
model=${model%/}
state=$model.state

# Nobody but this job's processes can take part; the folder is on a file system that all nodes see.
mkdir -p "$state"
export MEGAGRID_SECRET_FILE=$state/secret
# One that the user's own environment has would contradict it.
unset MEGAGRID_SECRET
(umask 077 && head -c 32 /dev/urandom | base64 >"$MEGAGRID_SECRET_FILE")

resume=()
if compgen -G "$state/iteration-*/checkpoint.json" >/dev/null; then
    resume=(--resume "$state")
fi
# srun takes the processors of a task from its own options only, since Slurm 22.05.
srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" megagrid lda "$corpus" --topics 200 --workers "${SLURM_CPUS_PER_TASK:-1}" \
    --checkpoint "$state" --checkpoint-every 10 --model "$model" "${resume[@]}"
