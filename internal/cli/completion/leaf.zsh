#compdef leaf
# Completion of leaf for zsh. Load it with: source <(leaf completion zsh)
_leaf() {
	local line
	local -a lines found
	lines=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ ${lines[1]} == files ]]; then
		_files
		return
	fi
	for line in "${(@)lines[2,-1]}"; do
		found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	_describe leaf found
}
if [[ ${funcstack[1]} == _leaf ]]; then
	_leaf "$@"
else
	compdef _leaf leaf
fi
