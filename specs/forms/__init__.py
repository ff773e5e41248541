"""Forms of a spec, and the difference of two.

- full: plain data with every default filled in;
- resolved: plain data without ``extends``, as ``zoo show`` prints it and exports record it;
- written out: a spec in which every short form is replaced by what it stands for;
- canonical: plain data that is equal for all specs of the same architecture.
"""
