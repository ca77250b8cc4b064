"""What proves a cut: the lists of its tables' files, and the certificate's form (docs/reference/certificate.md)."""
