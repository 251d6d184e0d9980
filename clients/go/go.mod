// A release sets this line to where the repository is; scripts/release checks it. Programs of this repository import the
// module by this name, whatever the line says.
module sessiond/clients/go

go 1.24
