package ledger

// A finding is what comes of two changes that concern one path: nothing where
// the reason is empty. The ranges are of either side.
type finding struct {
	reason RadarReason
	x, y   []LineRange
}

// compareTouches compares what two records do at one path.
func compareTouches(x, y touch, shared bool) finding {
	switch {
	case x.role == made && y.role == made:
		return bothMake(x.file, y.file)
	case x.role == made || y.role == made:
		return oneMakes(x, y, shared)
	}
	return bothChange(x.file, y.file, shared)
}

// bothChange compares changes of a file that both found at the same path.
func bothChange(x, y *file, shared bool) finding {
	xGone, yGone := x.Status == "D", y.Status == "D"
	xMoved, yMoved := x.Status == "R", y.Status == "R"
	switch {
	case xGone && yGone:
		return finding{}
	case xMoved && yMoved && x.Path != y.Path:
		return finding{reason: RenameRename}
	case xMoved && yGone, xGone && yMoved:
		return finding{reason: RenameDelete}
	case x.buildsOn(y), y.buildsOn(x):
		return finding{}
	case xGone, yGone:
		return finding{DeleteEdit, x.allRanges(), y.allRanges()}
	case x.arrivesWith(y):
		return finding{}
	case x.changesType(), y.changesType():
		return finding{reason: TypeChange} // git follows no rename then
	case x.onlyMoves(), y.onlyMoves():
		return finding{}
	case x.changesMode() && y.changesMode() && x.Mode != y.Mode, x.isLink(), y.isLink():
		return finding{reason: TypeChange}
	case !x.changesContent(), !y.changesContent(), x.Blob != "" && x.Blob == y.Blob:
		return sameFile(x, y)
	case x.Binary, y.Binary:
		return finding{reason: BinaryBoth}
	}
	return compareHunks(x, y, shared)
}

// bothMake compares two files that both put where none was.
func bothMake(x, y *file) finding {
	switch {
	case x.Status == "R" && y.Status == "R" && x.OldPath == y.OldPath:
		return finding{} // compared by its old path
	case x.arrivesWith(y):
		return finding{}
	case x.isPlainNew() && y.isPlainNew() && x.Mode == y.Mode && (isEmptyBlob(x.Blob) || isEmptyBlob(y.Blob)):
		return finding{reason: SameFile} // git takes the one that is not empty
	}
	return finding{reason: AddAdd}
}

// oneMakes compares a change that puts a file where there was none with one that
// found a file there: they do not start from the same mainline commit. Where git
// could not merge the first with the mainline, that is not for the second to mend.
func oneMakes(x, y touch, shared bool) finding {
	maker, finder := x, y
	if y.role == made {
		maker, finder = y, x
	}
	switch {
	case finder.OldBlob != "" && finder.OldBlob == maker.Blob:
		return finding{} // it is built on the other's result
	case finder.role == kept && x.arrivesWith(y.file):
		return finding{}
	case finder.role == gone, x.isLink(), y.isLink(), x.Binary, y.Binary:
		return finding{reason: SameFile}
	}
	return compareHunks(x.file, y.file, shared)
}

func sameFile(x, y *file) finding { return finding{SameFile, x.allRanges(), y.allRanges()} }

// buildsOn reports whether f changes what other made of the file.
func (f *file) buildsOn(other *file) bool {
	return f.OldBlob != "" && f.OldBlob == other.Blob && other.OldBlob != other.Blob
}

// onlyMoves reports whether f changes nothing but the file's name.
func (f *file) onlyMoves() bool {
	return f.Status == "R" && f.Mode == f.OldMode && !f.changesContent()
}

// arrivesWith reports whether both leave the same file behind.
func (f *file) arrivesWith(other *file) bool {
	return f.Blob != "" && f.Blob == other.Blob && f.Mode == other.Mode
}

// isPlainNew reports whether f is a new text file. What is renamed brings along
// what the other commit does to it by its old name.
func (f *file) isPlainNew() bool { return f.Status == "A" && !f.Binary && !f.isLink() }

// changesContent reports whether f changes the content, as far as is known.
func (f *file) changesContent() bool { return f.Blob == "" || f.Blob != f.OldBlob }

func (f *file) changesMode() bool { return f.Mode != f.OldMode }

func (f *file) changesType() bool {
	return f.Status == "T" || f.Mode != "" && f.OldMode != "" && typeOf(f.Mode) != typeOf(f.OldMode)
}

// isLink reports whether f leaves a symlink or a submodule behind.
func (f *file) isLink() bool { return typeOf(f.Mode) == "120" || typeOf(f.Mode) == "160" }

// typeOf returns the part of a mode that tells files, symlinks and submodules
// from each other.
func typeOf(mode string) string { return mode[:min(len(mode), 3)] }

// isEmptyBlob reports whether a blob is that of the empty file.
func isEmptyBlob(id string) bool {
	const sha1, sha256 = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
	return id == sha1 || id == sha256
}
