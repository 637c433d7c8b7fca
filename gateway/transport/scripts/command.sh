# SPDX-License-Identifier: Apache-2.0
# Runs a command: parameters are the time-out in seconds and the command. Its environment has the id.
#
# A pipeline of two: the left side runs the command in the foreground (so that signals are as in any
# shell) and has a watchdog beside it; the right side hears from all of them through the pipe and is
# alone in deciding. Words on the pipe: p PID (the command's process group), w READER SLEEP (what
# to kill at the end), t (time is up), c LINE (a line from the client: k cancels, t is its own
# time-out), x (stdin ended), e CODE (the command ended). The end of stdin means that the gateway is
# gone: the command goes on.
#
# At the end both streams get a line with the nonce; in a pipe it comes after all that the command
# wrote. Background processes may write on behind it, nobody waits for them.
sbx_param
sbx_t=$sbx_v
sbx_param
sbx_c=$sbx_v
sbx_w='printf "p %s\n" "$$"; exec >&4 2>&5 3<&- 4>&- 5>&-; exec sh -c "$1"'
sbx_x=setsid
command -v setsid >/dev/null 2>&1 || sbx_x=

# How many processes the memory controller has killed: cgroup v2, then v1.
sbx_kills() {
    sbx_k=
    for sbx_f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        [ -r "$sbx_f" ] || continue
        while read -r sbx_a sbx_b; do
            [ "$sbx_a" = oom_kill ] && sbx_k=$sbx_b
        done <"$sbx_f"
        return
    done
}

# Kills the process group, then whatever still carries this command's id in its environment.
sbx_kill() {
    [ -n "$sbx_p" ] || return
    kill -KILL "-$sbx_p" || kill -KILL "$sbx_p"
    command -v grep >/dev/null || return
    for sbx_i in 1 2 3 4 5 6 7 8; do
        sbx_l=$(grep -ls "SANDBOX_COMMAND_ID=$sbx_id" /proc/[0-9]*/environ)
        [ -n "$sbx_l" ] || return
        for sbx_f in $sbx_l; do
            sbx_f=${sbx_f#/proc/}
            kill -KILL "${sbx_f%%/*}"
        done
    done
}

# A program may have left the pipe in non-blocking mode: a full one then refuses the line.
sbx_say() {
    for sbx_i in 1 2 3 4 5 6 7 8 9 10; do
        printf '%s\n' "$1" && return
        sleep 1
    done
}

sbx_kills
sbx_before=$sbx_k
exec 3<&0 4>&1 5>&2 </dev/null 2>/dev/null
{
    {
        { IFS= read -r sbx_l <&3 && printf 'c %s\n' "$sbx_l" || printf 'x\n'; } &
        sbx_r=$!
        sleep "$sbx_t" 3<&- &
        sbx_z=$!
        printf 'w %s %s\n' "$sbx_r" "$sbx_z"
        wait "$sbx_z" && printf 't\n'
        wait
    } 4>&- 5>&- &
    SANDBOX_COMMAND_ID=$sbx_id $sbx_x sh -c "$sbx_w" sh "$sbx_c"
    printf 'e %s\n' "$?"
    exec 4>&- 5>&-
    wait
} | {
    trap '' PIPE
    sbx_p= sbx_r= sbx_z= sbx_w= sbx_g= sbx_e= sbx_why=exited
    while IFS=' ' read -r sbx_a sbx_b sbx_l; do
        case $sbx_a in
        p)
            sbx_p=$sbx_b
            [ "$sbx_why" = exited ] || sbx_kill
            ;;
        w) sbx_w=1 sbx_r=$sbx_b sbx_z=$sbx_l ;;
        x) sbx_g=1 ;;
        t)
            sbx_why=timed_out sbx_z=
            sbx_kill
            ;;
        c)
            sbx_g=1 sbx_why=cancelled
            [ "$sbx_b" = t ] && sbx_why=timed_out
            sbx_kill
            ;;
        e) sbx_e=$sbx_b ;;
        esac
        [ -n "$sbx_e" ] && [ -n "$sbx_w" ] && break
    done
    [ -z "$sbx_g" ] || sbx_r=
    kill $sbx_r $sbx_z
    sbx_kills
    [ "$sbx_k" = "$sbx_before" ] && sbx_k=same
    sbx_say "$sbx_nonce" >&5
    sbx_say "$sbx_nonce $sbx_why $sbx_e ${sbx_k:-same}" >&4
}
exit 0
