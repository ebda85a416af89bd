# Completion of leaf for bash. Load it with: source <(leaf completion bash)
_leaf() {
	local line kind word cut
	local -a words
	line=${COMP_LINE:0:COMP_POINT}
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	word=${words[${#words[@]} - 1]}
	# Readline completes only what stands after the last of these characters.
	cut=${word%"${word##*[=:]}"}
	COMPREPLY=()
	{
		read -r kind
		while IFS=$'\t' read -r line _; do
			printf -v line %q "${line#"$cut"}"
			COMPREPLY+=("$line")
		done
	} < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
	if [[ $kind == files ]]; then
		compopt -o default 2>/dev/null
	fi
}
complete -F _leaf leaf
