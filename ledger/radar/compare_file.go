package radar

// compareTouches compares two changes at one path.
func compareTouches(x, y touch, shared bool) finding {
	switch {
	case x.role == roleAdded && y.role == roleAdded:
		return bothAdd(x.file, y.file)
	case x.role == roleAdded || y.role == roleAdded:
		return oneAdds(x, y, shared)
	}
	return bothChange(x.file, y.file, shared)
}

// bothChange compares changes of a file that exists at the same path for both.
func bothChange(x, y *file, shared bool) finding {
	xDeleted, yDeleted := x.status == "D", y.status == "D"
	xRenamed, yRenamed := x.status == "R", y.status == "R"

	switch {
	case xDeleted && yDeleted:
		return finding{}
	case xRenamed && yRenamed && x.path != y.path:
		return finding{reason: RenameRename}
	case xRenamed && yDeleted, xDeleted && yRenamed:
		return finding{reason: RenameDelete}
	case x.buildsOn(y), y.buildsOn(x):
		return finding{}
	case xDeleted, yDeleted:
		return finding{DeleteEdit, x.allRanges(), y.allRanges()}
	case x.sameResult(y):
		return finding{}
	case x.changesType(), y.changesType():
		return finding{reason: TypeChange} // git does not follow the rename then
	case x.onlyRenames(), y.onlyRenames():
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

// bothAdd compares two files added at the same path, where neither base has a file.
func bothAdd(x, y *file) finding {
	switch {
	case x.status == "R" && y.status == "R" && x.oldPath == y.oldPath:
		return finding{} // compared by its old path
	case x.sameResult(y):
		return finding{}
	case x.isPlainNew() && y.isPlainNew() && x.mode == y.mode && (isEmptyBlob(x.blob) || isEmptyBlob(y.blob)):
		return finding{reason: SameFile} // git takes the non-empty one
	}
	return finding{reason: AddAdd}
}

// oneAdds compares a change that adds a file with a change whose base already has a file
// at this path. If git could not merge the first with the mainline, that is not a
// conflict between the two.
func oneAdds(x, y touch, shared bool) finding {
	adder, other := x, y
	if y.role == roleAdded {
		adder, other = y, x
	}
	switch {
	case other.oldBlob != 0 && other.oldBlob == adder.blob:
		return finding{} // it builds on the added file
	case other.role == roleModified && x.sameResult(y.file):
		return finding{}
	case other.role == roleRemoved, x.isLink(), y.isLink(), x.binary, y.binary:
		return finding{reason: SameFile}
	}
	return compareHunks(x.file, y.file, shared)
}

// buildsOn reports whether f starts from the result of other.
func (f *file) buildsOn(other *file) bool {
	return f.oldBlob != 0 && f.oldBlob == other.blob && other.oldBlob != other.blob
}

// onlyRenames reports whether f changes only the file's name.
func (f *file) onlyRenames() bool {
	return f.status == "R" && f.mode == f.oldMode && !f.changesContent()
}

// sameResult reports whether both changes result in the same file.
func (f *file) sameResult(other *file) bool {
	return f.blob != 0 && f.blob == other.blob && f.mode == other.mode
}

// isPlainNew reports whether f is a new text file. A renamed file is not: the merge also
// applies the other commit's changes at its old path.
func (f *file) isPlainNew() bool { return f.status == "A" && !f.binary && !f.isLink() }

// changesContent reports whether f changes the content. It assumes so if the blob is unknown.
func (f *file) changesContent() bool { return f.blob == 0 || f.blob != f.oldBlob }

func (f *file) changesMode() bool { return f.mode != f.oldMode }

func (f *file) changesType() bool {
	return f.status == "T" || f.mode != 0 && f.oldMode != 0 && typeOf(f.mode) != typeOf(f.oldMode)
}

// isLink reports whether the result of f is a symlink or a submodule.
func (f *file) isLink() bool { return typeOf(f.mode) == symlink || typeOf(f.mode) == submodule }

// typeOf returns the bits of a mode that distinguish files, symlinks and submodules.
func typeOf(mode uint32) uint32 { return mode >> 9 }

const (
	symlink   = 0o120
	submodule = 0o160
)

// The hashes (see hashOf) of the empty blob's ids in SHA-1 and SHA-256.
var (
	emptySHA1   = hashOf("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
	emptySHA256 = hashOf("473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813")
)

// isEmptyBlob reports whether id is the hash of the empty blob's id.
func isEmptyBlob(id uint64) bool { return id == emptySHA1 || id == emptySHA256 }
