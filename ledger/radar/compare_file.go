package radar

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
	xGone, yGone := x.status == "D", y.status == "D"
	xMoved, yMoved := x.status == "R", y.status == "R"
	switch {
	case xGone && yGone:
		return finding{}
	case xMoved && yMoved && x.path != y.path:
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
	case x.changesMode() && y.changesMode() && x.mode != y.mode, x.isLink(), y.isLink():
		return finding{reason: TypeChange}
	case !x.changesContent(), !y.changesContent(), x.blob != 0 && x.blob == y.blob:
		return sameFile(x, y)
	case x.binary, y.binary:
		return finding{reason: BinaryBoth}
	}
	return compareHunks(x, y, shared)
}

// bothMake compares two files that both put where none was.
func bothMake(x, y *file) finding {
	switch {
	case x.status == "R" && y.status == "R" && x.oldPath == y.oldPath:
		return finding{} // compared by its old path
	case x.arrivesWith(y):
		return finding{}
	case x.isPlainNew() && y.isPlainNew() && x.mode == y.mode && (isEmptyBlob(x.blob) || isEmptyBlob(y.blob)):
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
	case finder.oldBlob != 0 && finder.oldBlob == maker.blob:
		return finding{} // it is built on the other's result
	case finder.role == kept && x.arrivesWith(y.file):
		return finding{}
	case finder.role == gone, x.isLink(), y.isLink(), x.binary, y.binary:
		return finding{reason: SameFile}
	}
	return compareHunks(x.file, y.file, shared)
}

// buildsOn reports whether f changes what other made of the file.
func (f *file) buildsOn(other *file) bool {
	return f.oldBlob != 0 && f.oldBlob == other.blob && other.oldBlob != other.blob
}

// onlyMoves reports whether f changes nothing but the file's name.
func (f *file) onlyMoves() bool {
	return f.status == "R" && f.mode == f.oldMode && !f.changesContent()
}

// arrivesWith reports whether both leave the same file behind.
func (f *file) arrivesWith(other *file) bool {
	return f.blob != 0 && f.blob == other.blob && f.mode == other.mode
}

// isPlainNew reports whether f is a new text file. What is renamed brings along
// what the other commit does to it by its old name.
func (f *file) isPlainNew() bool { return f.status == "A" && !f.binary && !f.isLink() }

// changesContent reports whether f changes the content, as far as is known.
func (f *file) changesContent() bool { return f.blob == 0 || f.blob != f.oldBlob }

func (f *file) changesMode() bool { return f.mode != f.oldMode }

func (f *file) changesType() bool {
	return f.status == "T" || f.mode != 0 && f.oldMode != 0 && typeOf(f.mode) != typeOf(f.oldMode)
}

// isLink reports whether f leaves a symlink or a submodule behind.
func (f *file) isLink() bool { return typeOf(f.mode) == symlink || typeOf(f.mode) == submodule }

// typeOf returns the part of a mode that tells files, symlinks and submodules
// from each other.
func typeOf(mode uint32) uint32 { return mode >> 9 }

const (
	symlink   = 0o120
	submodule = 0o160
)

// The hashes of the empty file's ids, of SHA-1 and SHA-256.
var (
	emptySHA1   = hashOf("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
	emptySHA256 = hashOf("473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813")
)

// isEmptyBlob reports whether a blob is that of the empty file.
func isEmptyBlob(id uint64) bool { return id == emptySHA1 || id == emptySHA256 }
