# Steps that read files: lists, links, lock files, the book. Read by `.ci/run`.
# shellcheck shell=bash

leftovers() {
    local found
    found=$(git grep -nE '\b(todo|unimplemented|dbg)!|#\[ignore' -- '*.rs' || true)
    if [[ -n $found ]]; then
        printf 'unfinished or switched off:\n%s\n' "$found"
        return 1
    fi
    # A release replaces the placeholder of the repository's address in one line.
    found=$(git grep -nF 'example.''org' | grep -v '^Cargo.toml:[0-9]*:repository = ' || true)
    if [[ -n $found ]]; then
        printf 'the placeholder stands outside of "repository" in Cargo.toml:\n%s\n' "$found"
        return 1
    fi
}

# Every relative link in the Markdown files leads to a file, links of the book to a part of the
# book. A chapter may include files from anywhere in the repository. Paths that the text names
# exist.
links() {
    local file link bad=0
    while IFS= read -r file; do
        while IFS= read -r link; do
            if [[ ! -e $(dirname "$file")/$link ]]; then
                echo "$file: no such file: $link"
                bad=1
            elif [[ $file == docs/src/* && $link == *../* ]]; then
                echo "$file: a link that leaves the book: $link"
                bad=1
            fi
        done < <(grep -oE '\]\([^)#]+' "$file" | sed -E 's/^\]\(//' | grep -vE '^[a-z]+:' || true)
        while IFS= read -r link; do
            if [[ ! -e $(dirname "$file")/$link ]]; then
                echo "$file: nothing to include: $link"
                bad=1
            fi
        done < <(grep -oE '\{\{#include [^}:]+' "$file" | sed -E 's/^\{\{#include //' || true)
        # Files and folders that the text names. The changelog names removed ones.
        [[ $file == CHANGELOG.md ]] && continue
        while IFS= read -r link; do
            if [[ -d ${link%%/*} && ! -e $link && ! -e $(dirname "$file")/$link ]]; then
                echo "$file: no such path: $link"
                bad=1
            fi
        done < <(grep -oE '`[a-z_]+/[A-Za-z0-9_./-]+\.(rs|sh|md|toml|py)`|\bcd [a-z][A-Za-z0-9_./-]*' "$file" |
            sed -E 's/^cd //; s/`//g' | sort -u || true)
    done < <(git ls-files '*.md')
    return "$bad"
}

# Text for users and comments stay near plain technical English.
prose() {
    verify/ci/prose.py
}

# The lists of folders are complete, and a protocol needs only the crates that ARCHITECTURE.md names.
layout() {
    local manifest folder below bad=0
    while IFS= read -r manifest; do
        folder=$(dirname "$manifest")
        if ! grep -q "^${folder%%/*}/ " README.md; then
            echo "${folder%%/*}/ is not listed in README.md (Layout)"
            bad=1
        fi
        if grep -q '^\[package\]' "$manifest" && ! grep -q "^| .$folder/\`" ARCHITECTURE.md; then
            echo "$folder/ is not listed in ARCHITECTURE.md (Packages)"
            bad=1
        fi
    done < <(git ls-files '*/Cargo.toml')
    for folder in membership camera celect replica safehome groups kgroup pcm; do
        for below in $(sed -n '/^\[dependencies\]/,/^\[dev/s/^selvedge-\([a-z]*\).*/\1/p' "$folder/Cargo.toml"); do
            if [[ ! " core sim replica groups routine " == *" $below "* ]]; then
                echo "$folder depends on $below, on which no protocol may depend"
                bad=1
            fi
        done
    done
    local file
    # The files that ARCHITECTURE.md lists for a protocol crate. A hub has no peers, and pcm's two
    # machines share its messages.
    for file in {membership,camera,celect,replica,groups,safehome}/src/{config,counters,event,machine,state,check,published}.rs \
        {membership,camera,celect,replica,groups}/src/message.rs \
        kgroup/src/{config,event,machine,message,state,check,published}.rs \
        kgroup/src/{devices,routines}/{config,event,machine,state,published}.rs \
        pcm/src/{message,check,published}.rs \
        pcm/src/{gateway,follower}/{config,counters,event,machine,state}.rs; do
        if [[ ! -e $file ]]; then
            echo "$file is missing: ARCHITECTURE.md lists it under \"Files of a protocol crate\""
            bad=1
        fi
    done
    lints_of() { sed -n '/^\[workspace\.lints\./,/^\[profile/{/^\[profile/!p}' "$1" | grep -v '^#'; }
    if ! diff <(lints_of Cargo.toml) <(lints_of hosts/Cargo.toml); then
        echo "the lints of hosts/Cargo.toml differ from those of Cargo.toml: copy the table"
        bad=1
    fi
    return "$bad"
}

# The lock file of each workspace is up to date.
lock() {
    local file
    for file in $(git ls-files '*Cargo.lock'); do
        cargo metadata --locked --quiet --format-version 1 \
            --manifest-path "$(dirname "$file")/Cargo.toml" >/dev/null
    done
}

# The book builds, all its chapters are listed, and its guides are those of `selvedge::guide`.
book() {
    verify/ci/guide.py --check
    export PATH=$target/tools/bin:$PATH
    if ! command -v mdbook >/dev/null; then
        install_tool mdbook --version '^0.4' --no-default-features
    fi
    local warnings=$target/book.log chapter
    mdbook build docs --dest-dir "$target/book" 2>&1 | tee "$warnings"
    if grep -E 'WARN|ERROR' "$warnings"; then
        return 1
    fi
    for chapter in docs/src/*.md; do
        chapter=$(basename "$chapter")
        if [[ $chapter != SUMMARY.md ]] && ! grep -qF "($chapter)" docs/src/SUMMARY.md; then
            echo "docs/src/SUMMARY.md does not list $chapter"
            return 1
        fi
    done
}
