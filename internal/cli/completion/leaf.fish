# Completion of leaf for fish: leaf completion fish > ~/.config/fish/completions/leaf.fish
function __leaf_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l found ($words[1] complete -- $words[2..-1] 2>/dev/null)
	if test "$found[1]" = files
		__fish_complete_path (commandline -ct)
	else
		printf '%s\n' $found[2..-1]
	end
end
complete -c leaf -f -a '(__leaf_complete)'
